#include "einmal/gateway/client_connection.hpp"

#include <algorithm>

#include "einmal/fingerprint/target.hpp"
#include "einmal/gateway/answers.hpp"
#include "einmal/gateway/cors.hpp"
#include "einmal/gateway/keyed.hpp"
#include "einmal/gateway/well_known.hpp"
#include "einmal/http/write.hpp"

namespace einmal::gateway {

namespace {

/// A connection that idled this long gives its buffers back.
constexpr Duration keeps_memory = std::chrono::seconds(1);
/// How long a client may take to read or to close after our last byte.
constexpr Duration write_patience = std::chrono::seconds(60);
constexpr Duration linger_patience = std::chrono::seconds(2);
/// What is read and thrown away of a request that was answered before its end.
constexpr std::size_t discard_limit = std::size_t{256} << 10;

class RequestUnderWay {
 public:
  explicit RequestUnderWay(Core& core) : core_(core) { ++core_.requests; }
  ~RequestUnderWay() {
    --core_.requests;
    core_.request_ended();
  }
  RequestUnderWay(const RequestUnderWay&) = delete;
  RequestUnderWay& operator=(const RequestUnderWay&) = delete;

 private:
  Core& core_;
};

}  // namespace

ClientConnection::ClientConnection(Core& core, std::unique_ptr<Stream> stream)
    : Inbox(std::move(stream), core.settings->parser_limits),
      core_(core),
      settings_(core.settings) {
  peer_.address =
      identity::IpAddress::parse(this->stream().peer_address()).value_or(identity::IpAddress());
  core_.events.connections(++core_.connections);
}

ClientConnection::~ClientConnection() {
  stream().close();
  core_.events.connections(--core_.connections);
}

Async<> ClientConnection::serve() {
  if (stream().is_tls()) {
    stream().expires_after(settings_->config.limits.head_time);
    const IoResult shaken = co_await stream().handshake();
    if (!shaken.ok()) co_return;
    peer_.certificate = stream().peer_certificate();
  }
  while (!close_) {
    settings_ = core_.settings;
    const Next next = co_await read_head();
    if (next == Next::end) break;
    co_await answer_request();
    parser().reset();
  }
  co_await linger();
}

Async<ClientConnection::Next> ClientConnection::read_head() {
  request_read_ = invited_ = cors_ = false;
  method_.clear();
  event_ = {};
  bool began = false;
  for (;;) {
    const auto fed = poll();
    if (fed.step == http::Step::head) co_return Next::request;
    if (fed.step == http::Step::error) {
      co_await refuse_head();
      co_return Next::end;
    }
    IoResult got;
    if (parser().started()) {
      if (!began) stream().expires_after(settings_->config.limits.head_time);
      began = true;
      got = co_await fill();
    } else {
      got = co_await wait_for_bytes();
    }
    if (!got.ok()) {
      gone_ = true;
      co_return Next::end;
    }
  }
}

/// Between requests: for a while with a buffer, then without.
Async<IoResult> ClientConnection::wait_for_bytes() {
  stream().expires_after(keeps_memory);
  IoResult got = co_await fill();
  if (got.status != IoStatus::timed_out || core_.draining) co_return got;
  give_memory_back(settings_->parser_limits);
  stream().expires_after(settings_->config.limits.keep_alive_time);
  got = co_await stream().readable();
  co_return got;
}

Async<> ClientConnection::refuse_head() {
  request_read_ = true;  // There is no knowing where it ends.
  const http::Problem problem = http::problem_of(parser().error());
  co_await answer_problem(*this, problem);
  core_.events.request_ended(event_);
}

Async<> ClientConnection::answer_request() {
  const RequestUnderWay under_way(core_);
  began_ = core_.clock.boot_now();
  close_ = !parser().keep_alive() || core_.draining;
  auto& head = request();
  settings_->callers->strip(head.headers, peer_);
  path_ = canonical_path(head.target);
  method_ = head.method;
  http10_ = head.version < 11;
  event_.method = method_;
  traceparent_ = head.headers.first("traceparent").value_or("");
  event_.traceparent = traceparent_;

  origin_ = head.headers.first("Origin").value_or("");
  if (is_well_known(*settings_, path_)) {
    use_cors();
    co_await answer_well_known(*this);
  } else if (auto preflight = answer_preflight(*settings_, head, path_)) {
    co_await answer(*preflight, no_body);
  } else if (const Matched matched = settings_->match(method_, path_); matched) {
    use_cors();
    event_.operation = matched.operation->label;
    co_await answer_matched(*this, matched);
  } else {
    co_await answer_unmatched(*this);
  }
  if (!request_read_) co_await discard_body();
  event_.duration = std::chrono::duration_cast<Duration>(core_.clock.boot_now() - began_);
  core_.events.request_ended(event_);
  core_.events.buffered(core_.budget.used());
}

http::Fed ClientConnection::poll_body() {
  const auto fed = poll();
  if (fed.step == http::Step::complete) request_read_ = true;
  if (fed.step == http::Step::error) close_ = true;
  event_.request_body += fed.body.size();
  return fed;
}

bool ClientConnection::is_body_here() {
  const auto framing = parser().framing();
  return request_read_ || framing == http::Framing::none ||
         (framing == http::Framing::length &&
          buffer().view().size() >= parser().content_length().value_or(0));
}

AnswerFraming ClientConnection::answer_framing(bool length_known) {
  AnswerFraming framing;
  if (core_.draining) close_ = true;
  if (!length_known) {
    framing.chunked = !is_http10();
    if (is_http10()) close_ = true;
  }
  framing.close = close_;
  framing.name_keep_alive = is_http10() && !close_;
  return framing;
}

void ClientConnection::finish_head(http::HeaderLines& lines, const AnswerFraming& framing) {
  if (cors_) write_cors(*settings_->config.cors, origin_, lines);
  add_framing(lines, framing);
}

Async<> ClientConnection::answer(http::ResponseHead& head, std::string_view body) {
  // A request that waits for an invitation may come or not: only the end of the connection is sure.
  if (!request_read_ && parser().expects_continue() && !invited_) close_ = true;
  if (!head.headers.has("Date")) head.headers.add("Date", core_.date());
  finish_head(head.headers, answer_framing(true));
  std::string bytes;
  bytes.reserve(512);
  http::append_head(bytes, head);
  event_.status = head.status;
  const std::string_view shown = method_ == "HEAD" ? std::string_view() : body;
  co_await write(bytes, shown);
}

Async<bool> ClientConnection::invite_body() {
  if (!parser().expects_continue() || invited_ || !buffer().empty()) co_return true;
  invited_ = true;
  const bool written = co_await write("HTTP/1.1 100 Continue\r\n\r\n");
  co_return written;
}

Async<bool> ClientConnection::write(std::string_view a, std::string_view b, std::string_view c,
                                    std::string_view d) {
  if (gone_) co_return false;
  stream().expires_after(write_patience);
  const IoResult result = co_await stream().write(a, b, c, d);
  if (!result.ok()) gone_ = close_ = true;
  event_.answer_body += b.size() + c.size() + d.size();
  co_return result.ok();
}

/// So that a client that still sends can read the answer and go on with the connection.
Async<> ClientConnection::discard_body() {
  std::size_t discarded = 0;
  if (parser().content_length().value_or(0) > discard_limit) close_ = true;
  stream().expires_after(linger_patience);
  while (!request_read_ && !close_) {
    const auto fed = poll_body();
    discarded += fed.body.size();
    if (discarded > discard_limit) close_ = true;
    if (fed.step != http::Step::need_more) continue;
    const IoResult got = co_await fill();
    if (!got.ok()) gone_ = close_ = true;
  }
}

/// Ends the connection so that the last answer is not lost to a reset: our end first, then what the
/// client still sends is read and thrown away.
Async<> ClientConnection::linger() {
  if (gone_) co_return;
  stream().shut_down();
  stream().expires_after(linger_patience);
  std::size_t discarded = 0;
  while (discarded < discard_limit) {
    buffer().consume(buffer().view().size());
    const IoResult got = co_await fill();
    if (!got.ok()) co_return;
    discarded += got.bytes;
  }
}

}  // namespace einmal::gateway
