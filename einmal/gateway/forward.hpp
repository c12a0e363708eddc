#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "einmal/http/head.hpp"
#include "einmal/http/message_parser.hpp"

/// Heads on their way through: what belongs to one connection only is left behind, everything else
/// keeps its bytes and its order (RFC 9110 section 7.6.1).

namespace einmal::gateway {

/// Names that end at this hop in one message: the fixed ones, those its Connection lines name, and
/// `Einmal-*` in both spellings, which only einmal itself says.
class HopByHop {
 public:
  explicit HopByHop(const http::HeaderLines& headers);
  bool contains(std::string_view name) const;

 private:
  std::vector<std::string_view> named_;
};

/// Whether `name` is `Einmal-*` or `Einmal_*`.
bool is_internal(std::string_view name);

/// Whether the message asks to leave HTTP (`Connection: upgrade` with an `Upgrade` line).
bool asks_upgrade(const http::HeaderLines& headers);

/// Appends the head of an unkeyed request as it goes upstream. `framing` chunked: the coding is
/// named anew.
void append_forwarded(std::string& out, const http::RequestHead& head, http::Framing framing,
                      bool close_after);

/// How an answer's body goes to the client, and what becomes of the connection.
struct AnswerFraming {
  bool chunked = false;          ///< We frame by chunks.
  bool close = false;            ///< The connection ends with this answer.
  bool name_keep_alive = false;  ///< HTTP/1.0 that lives on.
};

/// Appends the head of an unkeyed answer as it goes to the client.
void append_forwarded(std::string& out, const http::ResponseHead& head,
                      const AnswerFraming& framing);

/// `Connection` and `Transfer-Encoding` lines and the empty line.
void append_end_of_head(std::string& out, const AnswerFraming& framing);

}  // namespace einmal::gateway
