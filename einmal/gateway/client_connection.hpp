#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "einmal/gateway/core.hpp"
#include "einmal/gateway/forward.hpp"
#include "einmal/gateway/inbox.hpp"
#include "einmal/http/replay_headers.hpp"
#include "einmal/identity/caller.hpp"

namespace einmal::gateway {

/// The body of an answer without one; named, because a braced argument in a co_await is a shape
/// that g++ 12 miscompiles.
inline constexpr std::string_view no_body;

/// One client's connection and the request it is at. `serve` is its whole life; what answers a
/// request uses the rest.
class ClientConnection : public Inbox<http::RequestParser> {
 public:
  ClientConnection(Core& core, std::unique_ptr<Stream> stream);
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  /// Requests one after another until either side ends the connection.
  Async<> serve();

  Core& core() { return core_; }
  /// What this request follows.
  const Settings& settings() const { return *settings_; }
  std::shared_ptr<const Settings> keep_settings() const { return settings_; }
  http::RequestHead& request() { return parser().head(); }
  const identity::Peer& peer() const { return peer_; }

  /// `poll` that notes the end of the request and what is wrong with it.
  http::Fed poll_body();
  /// Whether all of the body is here already, or there is none.
  bool is_body_here();
  /// Whether the request was read to its end.
  bool is_request_read() const { return request_read_; }

  /// After this answer the connection ends.
  void close_after_answer() { close_ = true; }
  /// How an answer without chunks is framed; `chunked` if its length is not known and the client
  /// can read chunks, otherwise the connection's end ends it.
  AnswerFraming answer_framing(bool length_known);
  bool is_http10() const { return http10_; }
  const std::string& method() const { return method_; }
  const std::string& path() const { return path_; }      ///< Canonical.
  const std::string& origin() const { return origin_; }  ///< Of a browser's request, or empty.
  /// From now on answers to this request are readable across origins as [cors] says.
  void use_cors() { cors_ = settings_->config.cors.has_value(); }

  /// What every head gets at last: lines for other origins, framing.
  void finish_head(http::HeaderLines& lines, const AnswerFraming& framing);
  /// Writes a whole answer whose length is known; Content-Length, if the status has one, is in the
  /// head. Framing lines are added.
  Async<> answer(http::ResponseHead& head, std::string_view body);

  /// Writes `100 Continue` if the client waits for it.
  Async<bool> invite_body();

  /// The parts of an answer as they come; false: the client is gone and the connection ends.
  Async<bool> write(std::string_view a, std::string_view b = {}, std::string_view c = {},
                    std::string_view d = {});

  /// What is told at the end of the request.
  RequestEvent& event() { return event_; }

 private:
  enum class Next : std::uint8_t { request, end };
  Async<Next> read_head();
  Async<IoResult> wait_for_bytes();
  Async<> refuse_head();
  Async<> answer_request();
  Async<> discard_body();
  Async<> linger();

  Core& core_;
  std::shared_ptr<const Settings> settings_;
  identity::Peer peer_;
  RequestEvent event_;
  std::string method_, path_, origin_, traceparent_;
  bool http10_ = false;
  bool cors_ = false;
  BootTime began_{};
  bool close_ = false;
  bool request_read_ = false;
  bool invited_ = false;
  bool gone_ = false;  ///< Nothing can be written any more.
};

/// What happens to a request without a key on its way through.
struct ProxyRules {
  http::UpstreamRules upstream;
  http::HeaderLines marks;  ///< Added to the answer.
};

/// Proxies a request without a key: untouched but for what the rules take out, streamed, any method
/// and size.
Async<> proxy(ClientConnection& client, const ProxyRules& rules);

}  // namespace einmal::gateway
