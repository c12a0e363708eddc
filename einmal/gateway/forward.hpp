#pragma once

#include <string>
#include <string_view>

#include "einmal/http/head.hpp"

namespace einmal::gateway {

/// How an answer's body goes to the client, and what becomes of the connection.
struct AnswerFraming {
  bool chunked = false;          ///< We frame by chunks.
  bool close = false;            ///< The connection ends with this answer.
  bool name_keep_alive = false;  ///< HTTP/1.0 that lives on.
};

inline void add_framing(http::HeaderLines& lines, const AnswerFraming& framing) {
  if (framing.chunked) lines.add("Transfer-Encoding", "chunked");
  if (framing.close) {
    lines.add("Connection", "close");
  } else if (framing.name_keep_alive) {
    lines.add("Connection", "keep-alive");
  }
}

/// A request to leave HTTP (`Connection: upgrade` with `Upgrade` lines), kept beside the head while
/// hop-by-hop lines are taken out of it.
class Upgrade {
 public:
  Upgrade() = default;
  explicit Upgrade(const http::HeaderLines& lines) {
    if (!lines.has_token("Connection", "upgrade")) return;
    for (const auto line : lines) {
      if (http::iequals(line.name, "Upgrade")) lines_.add(line.name, line.value);
    }
  }
  bool is_asked() const { return !lines_.empty(); }
  void add_to(http::HeaderLines& lines) const {
    if (lines_.empty()) return;
    lines.add("Connection", "upgrade");
    for (const auto line : lines_) lines.add(line.name, line.value);
  }

 private:
  http::HeaderLines lines_;
};

}  // namespace einmal::gateway
