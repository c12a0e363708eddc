#include "einmal/gateway/answers.hpp"
#include "einmal/gateway/client_connection.hpp"
#include "einmal/gateway/relay.hpp"
#include "einmal/gateway/tunnel.hpp"
#include "einmal/http/problem.hpp"
#include "einmal/http/write.hpp"

namespace einmal::gateway {

namespace {

/// One exchange that passes through: the request goes up while the answer comes down.
class Exchange {
 public:
  Exchange(ClientConnection& client, UpstreamHandle upstream, const ProxyRules& rules)
      : client_(client),
        upstream_(std::move(upstream)),
        rules_(rules),
        framing_(client.is_request_read() ? http::Framing::none : client.parser().framing()) {}

  Async<> run();
  /// Of the final answer; 0 without a readable one.
  int upstream_status() const { return upstream_status_; }

 private:
  Async<bool> send_head();
  Async<> send_body();
  Async<bool> send_piece(std::string_view piece);
  Async<> relay_answer();
  Async<> relay_head();
  Async<> fail(int status);
  Async<> stop_sending(Async<>& sending);

  ClientConnection& client_;
  UpstreamHandle upstream_;
  const ProxyRules& rules_;
  const http::Framing framing_;  ///< Of what is still to come of the request.
  Upgrade upgrade_;
  std::string out_;
  bool sent_ = false;       ///< The whole request went out.
  bool answering_ = false;  ///< The client has got the head of the answer.
  bool whole_ = false;      ///< The whole answer was passed on.
  bool timed_out_ = false;
  int upstream_status_ = 0;
};

Async<> Exchange::run() {
  const bool going = co_await send_head();
  Async<> sending;
  if (going && !sent_) {
    sending = send_body();
    sending.start();
  }
  co_await relay_answer();
  if (going && !sent_) co_await stop_sending(sending);
  const bool reusable = whole_ && sent_ && upstream_->parser().reusable();
  if (reusable) client_.settings().pool->give_back(std::move(upstream_));
}

/// The head, and with it what is already here of the body. False: the upstream is gone.
Async<bool> Exchange::send_head() {
  const auto& config = client_.settings().config;
  auto& request = client_.request();
  upgrade_ = Upgrade(request.headers);
  http::prepare_for_upstream(request.headers, rules_.upstream);
  if (framing_ == http::Framing::chunked) request.headers.add("Transfer-Encoding", "chunked");
  upgrade_.add_to(request.headers);
  http::append_head(out_, request);
  upstream_->parser().reset(client_.method());
  upstream_->stream().expires_after(config.times.answer);

  auto fed = client_.poll_body();
  if (fed.step == http::Step::body && framing_ == http::Framing::length) {
    const std::string_view first = fed.body;
    const IoResult wrote = co_await upstream_->stream().write(out_, first);
    if (client_.poll_body().step == http::Step::complete) sent_ = true;
    co_return wrote.ok();
  }
  if (fed.step == http::Step::complete) sent_ = true;
  const IoResult wrote = co_await upstream_->stream().write(out_);
  if (!wrote.ok() || fed.step != http::Step::body) co_return wrote.ok();
  const bool ok = co_await send_piece(fed.body);
  co_return ok;
}

/// What is left of the body, as it comes. Ends early when either side fails.
Async<> Exchange::send_body() {
  const auto& limits = client_.settings().config.limits;
  for (;;) {
    const auto fed = client_.poll_body();
    if (fed.step == http::Step::body) {
      const bool ok = co_await send_piece(fed.body);
      if (!ok) co_return;
    } else if (fed.step == http::Step::complete) {
      sent_ = true;
      if (framing_ != http::Framing::chunked) co_return;
      std::string last;
      http::prepare_trailers(client_.parser().trailers(), rules_.upstream.keys,
                             rules_.upstream.caller_header);
      http::append_last_chunk(last, client_.parser().trailers());
      co_await upstream_->stream().write(last);
      co_return;
    } else if (fed.step == http::Step::need_more) {
      client_.stream().expires_after(limits.body_time);
      const IoResult got = co_await client_.fill(Buffer::large);
      if (got.ok()) continue;
      client_.close_after_answer();
      upstream_->stream().close();  // Half a request: the upstream must not take it for a whole.
      co_return;
    } else {
      upstream_->stream().close();
      co_return;
    }
  }
}

Async<bool> Exchange::send_piece(std::string_view piece) {
  if (framing_ != http::Framing::chunked) {
    const IoResult wrote = co_await upstream_->stream().write(piece);
    co_return wrote.ok();
  }
  const http::ChunkHead size(piece.size());
  const IoResult wrote = co_await upstream_->stream().write(size.view(), piece, http::chunk_end);
  co_return wrote.ok();
}

/// The answer came first, or never: the rest of the request has nowhere to go.
Async<> Exchange::stop_sending(Async<>& sending) {
  if (!sending.done()) {
    client_.close_after_answer();
    upstream_->stream().close();
    client_.stream().cancel();
  }
  co_await sending;
}

Async<> Exchange::relay_answer() {
  const auto patience = client_.settings().config.times.answer;
  for (;;) {
    const auto fed = co_await next_step(*upstream_, patience, Buffer::small, timed_out_);
    if (fed.step == http::Step::error) {
      co_await fail(timed_out_ ? 504 : 502);
      co_return;
    }
    if (fed.step == http::Step::interim) {
      if (client_.is_http10()) continue;
      out_.clear();
      auto& interim = upstream_->parser().head();
      http::prepare_for_client(interim.headers, false);
      http::append_head(out_, interim);
      const bool ok = co_await client_.write(out_);
      if (!ok) co_return;
      continue;
    }
    co_await relay_head();
    co_return;
  }
}

/// The head of the final answer with what is here of its body, then the rest.
Async<> Exchange::relay_head() {
  auto& parser = upstream_->parser();
  auto& head = parser.head();
  client_.event().status = upstream_status_ = head.status;
  out_.clear();
  if (parser.framing() == http::Framing::tunnel) {
    if (!upgrade_.is_asked() && client_.method() != "CONNECT") {
      co_await fail(502);
      co_return;
    }
    const Upgrade switched(head.headers);
    http::prepare_for_client(head.headers, false);
    switched.add_to(head.headers);
    http::append_head(out_, head);
    client_.close_after_answer();
    answering_ = true;
    const bool ok = co_await client_.write(out_);
    if (ok) co_await tunnel(client_, *upstream_);
    co_return;
  }
  const bool bounded =
      parser.framing() == http::Framing::length || parser.framing() == http::Framing::none;
  const AnswerFraming framing = client_.answer_framing(bounded);
  http::prepare_for_client(head.headers, false);
  for (const auto line : rules_.marks) head.headers.add(line.name, line.value);
  client_.finish_head(head.headers, framing);
  http::append_head(out_, head);
  answering_ = true;
  const auto patience = client_.settings().config.times.answer;
  const Relayed relayed = co_await relay_body(client_, *upstream_, out_, framing.chunked, patience);
  whole_ = relayed == Relayed::whole;
  if (relayed == Relayed::upstream_failed) co_await fail(502);
}

/// Without a readable answer: ours, or, once the client has begun to read one, a broken connection.
Async<> Exchange::fail(int status) {
  if (answering_) {
    client_.close_after_answer();
    client_.stream().reset();
    co_return;
  }
  http::Problem problem(http::Reason::upstream_failed,
                        status == 504 ? "it did not answer in time" : "it gave no readable answer");
  problem.status = status;
  problem.keyed = false;
  co_await answer_problem(client_, problem);
}

}  // namespace

Async<> proxy(ClientConnection& client, const ProxyRules& rules) {
  const auto& settings = client.settings();
  Acquired acquired = co_await settings.pool->acquire(settings.config.times.connect);
  if (!acquired.connection) {
    http::Problem problem(http::Reason::upstream_failed, "it cannot be reached; nothing was sent");
    problem.status = acquired.why == NoUpstream::timed_out ? 504 : 502;
    problem.keyed = false;
    co_await answer_problem(client, problem);
    co_return;
  }
  UpstreamEvent told;
  told.reused_connection = acquired.connection->is_reused();
  const auto began = client.core().clock.boot_now();
  Exchange exchange(client, std::move(acquired.connection), rules);
  co_await exchange.run();
  told.status = exchange.upstream_status();
  told.duration = client.core().clock.boot_now() - began;
  client.core().events.upstream_ended(told);
}

}  // namespace einmal::gateway
