#include "einmal/gateway/keyed.hpp"

#include "einmal/gateway/answers.hpp"
#include "einmal/gateway/execute.hpp"
#include "einmal/gateway/identify.hpp"
#include "einmal/gateway/key_member.hpp"
#include "einmal/gateway/keyed_request.hpp"
#include "einmal/gateway/relay.hpp"
#include "einmal/gateway/representation.hpp"
#include "einmal/http/key_field.hpp"
#include "einmal/http/negotiation.hpp"
#include "einmal/http/target.hpp"
#include "einmal/http/write.hpp"

namespace einmal::gateway {

namespace {

using http::Problem;
using http::Reason;

/// An execution that nobody waits for: its operation resource tells how it ended.
Async<> execute_unattended(Core& core, std::shared_ptr<const KeyedRequest> request,
                           std::unique_ptr<Execution> execution) {
  const Executed executed = co_await execute(core, std::move(request), std::move(execution));
}

/// How a duplicate is answered that gets neither the execution nor a stored result.
Problem duplicate_problem(const Begun& begun, const OperationConfig& config) {
  if (const auto* mismatch = std::get_if<begun::Mismatch>(&begun)) {
    Problem problem(Reason::key_reused, "use a new key for a new request");
    problem.operation = operation_url(mismatch->operation_id);
    return problem;
  }
  if (const auto* running = std::get_if<begun::InProgress>(&begun)) {
    Problem problem(Reason::in_progress);
    problem.retry_after = running->retry_after;
    problem.operation = operation_url(running->operation_id);
    return problem;
  }
  if (const auto* uncertain = std::get_if<begun::Uncertain>(&begun)) {
    Problem problem(Reason::outcome_uncertain);
    problem.status = config.uncertain_status;
    problem.operation = operation_url(uncertain->record->operation_id);
    problem.retry_after = retry_after_uncertain(config);
    if (uncertain->record->result) problem.upstream_status = uncertain->record->result->status;
    return problem;
  }
  if (const auto* gone = std::get_if<begun::Gone>(&begun)) {
    Problem problem(Reason::key_expired);
    problem.operation = operation_url(gone->record->operation_id);
    problem.expires = gone->record->expires;
    return problem;
  }
  Problem problem(Reason::store_unavailable);
  if (const auto* released = std::get_if<begun::Released>(&begun)) {
    problem = Problem(Reason::released);
    problem.retry_after = released->retry_after;
  } else if (const auto* waiters = std::get_if<begun::TooManyWaiters>(&begun)) {
    problem = Problem(Reason::too_many_waiters);
    problem.retry_after = waiters->retry_after;
  } else if (std::holds_alternative<begun::Incomparable>(begun)) {
    problem = Problem(Reason::fingerprint_unknown);
  } else if (const auto* over = std::get_if<begun::OverQuota>(&begun)) {
    problem = Problem(Reason::quota);
    problem.retry_after = over->retry_after;
  } else if (std::holds_alternative<begun::Draining>(begun)) {
    problem = Problem(Reason::draining);
  }
  return problem;
}

/// Where the current representation of what a record made is found: a path at the upstream; empty
/// if the stored result is what is replayed, or it named no place there.
std::string current_target(const OperationConfig& config, const Record& record,
                           std::string_view host) {
  const StoredResult& result = *record.result;
  if (config.replay != ReplayMode::resource || record.state != State::completed ||
      result.body_kept != BodyKept::by_choice || !result.resource_id)
    return {};
  const std::string& location = *result.resource_id;
  const auto absolute = http::parse_absolute_target(location);
  if (absolute && !http::iequals(absolute->authority, host)) return {};
  std::string target(absolute ? absolute->rest : location);
  target = target.substr(0, target.find('#'));
  return !target.empty() && target.front() == '/' && target.substr(0, 2) != "//" ? target
                                                                                 : std::string();
}

/// Frees a waiter's place soon after its client has left.
class ClientWatch final : private Deadline {
 public:
  ClientWatch(ClientConnection& client, Delivery<std::optional<Begun>>& begun)
      : Deadline(client.core().loop), client_(client), begun_(begun) {
    set_after(Loop::tick);
  }
  void watch(Engine::Ticket ticket) { ticket_ = ticket; }

 private:
  void expired() override {
    if (begun_.is_set()) return;
    auto& engine = client_.core().engine;
    const auto peer = client_.stream().look_at_peer();
    // Who has only ended its own direction still gets its answer, but does not hold a waiter's
    // place.
    const bool has_left = peer == Stream::Peer::gone ||
                          (peer == Stream::Peer::half_closed && engine.is_waiting(ticket_));
    if (!has_left) return set_after(Loop::tick);
    engine.drop(ticket_);
    begun_.set(std::nullopt);
  }

  ClientConnection& client_;
  Delivery<std::optional<Begun>>& begun_;
  Engine::Ticket ticket_{};
};

/// One request on the road head -> caller -> key -> body -> fingerprint -> claim -> answer.
class KeyedAnswer {
 public:
  KeyedAnswer(ClientConnection& client, const Matched& matched)
      : client_(client),
        core_(client.core()),
        request_(std::make_shared<KeyedRequest>(client.keep_settings(), matched, core_.budget)),
        config_(request_->config()) {}

  Async<> run(http::KeyFound key);

 private:
  Async<bool> identify_caller();
  Async<bool> authorize();
  Async<bool> check_key(const http::KeyFound& key);
  Async<bool> check_quota();
  Async<bool> read_body();
  Async<bool> compute_fingerprint();
  std::optional<Problem> cannot_hold(std::size_t bytes);

  void choose_in_flight();
  Async<std::optional<Begun>> begin();
  Async<> answer(Begun begun);
  Async<> execute_owned(std::unique_ptr<Execution> execution);
  Async<> answer_accepted(const OperationId& id);
  Async<> answer_current(const Record& record, std::string target);
  Async<> forward_unkeyed();
  Async<> pass_on(UpstreamAnswer answer);
  Async<> stream(UpstreamAnswer& answer);
  Async<> refuse(Problem problem);
  void reached(Point point) {
    if (scope_) core_.observer.reached(point, *scope_, generation_);
  }

  ClientConnection& client_;
  Core& core_;
  std::shared_ptr<KeyedRequest> request_;
  const OperationConfig& config_;
  std::string account_;
  std::optional<Scope> scope_;
  Generation generation_{};
  InFlight in_flight_ = InFlight::reject;
  Duration wait_{};
  std::string_view applied_;  ///< The preference that was honoured.
};

Async<> KeyedAnswer::run(http::KeyFound key) {
  const bool known = co_await identify_caller();
  if (!known) co_return;
  const bool allowed = co_await authorize();
  if (!allowed) co_return;
  const auto& member = config_.key.member;
  if (member) {  // The key may stand in the body: that is read first.
    const bool read = co_await read_body();
    if (!read) co_return;
    key = http::only_key(std::move(key), find_member_key(request_->body, *member));
  }
  if (member && std::holds_alternative<http::key::Absent>(key) && !config_.key.required) {
    co_await forward_unkeyed();
    co_return;
  }
  const bool keyed = co_await check_key(key);
  if (!keyed) co_return;
  if (!member) {
    const bool within = co_await check_quota();
    if (!within) co_return;
    const bool read = co_await read_body();
    if (!read) co_return;
  }
  const bool computed = co_await compute_fingerprint();
  if (!computed) co_return;
  choose_in_flight();
  std::optional<Begun> begun = co_await begin();
  if (!begun) {
    client_.close_after_answer();  // The client of a waiter has left.
    co_return;
  }
  co_await answer(std::move(*begun));
}

// --- Before the claim: every refusal leaves the key untouched.

Async<bool> KeyedAnswer::identify_caller() {
  Identified identified = co_await identify(client_, config_.times);
  if (auto* refused = std::get_if<Problem>(&identified)) {
    co_await answer_problem(client_, *refused);
    co_return false;
  }
  account_ = std::move(std::get<std::string>(identified));
  co_return true;
}

/// Whether the caller may do this now: asked for every request, replays included.
Async<bool> KeyedAnswer::authorize() {
  const auto& service = request_->operation().authorize;
  if (!service) co_return true;
  const std::optional<Problem> refused = co_await ask_permission(client_, *service, config_.times);
  if (!refused) co_return true;
  co_await answer_problem(client_, *refused);
  co_return false;
}

Async<bool> KeyedAnswer::check_key(const http::KeyFound& key) {
  if (const auto* present = std::get_if<http::key::Present>(&key)) {
    auto scope = Scope::make(client_.settings().config.name_space, account_, request_->name(),
                             present->value);
    if (scope) {
      scope_ = std::move(*scope);
      co_return true;
    }
    Problem unusable(Reason::key_invalid, "the operation's name is too long for a key");
    co_await refuse(std::move(unusable));
    co_return false;
  }
  Problem problem(Reason::key_missing, "send " + config_.key.header + " with a key of your own");
  if (const auto* invalid = std::get_if<http::key::Invalid>(&key))
    problem = Problem(Reason::key_invalid, std::string(invalid->why));
  co_await refuse(std::move(problem));
  co_return false;
}

/// Asked only where a body is still to come: `begin` asks again.
Async<bool> KeyedAnswer::check_quota() {
  if (client_.is_body_here()) co_return true;
  Delivery<std::optional<begun::OverQuota>> answered(core_.loop);
  core_.engine.check_quota(*scope_, [&answered](std::optional<begun::OverQuota> over) {
    answered.set(std::move(over));
  });
  const std::optional<begun::OverQuota> over = co_await answered;
  if (!over) co_return true;
  Problem problem(Reason::quota);
  problem.retry_after = over->retry_after;
  co_await refuse(std::move(problem));
  co_return false;
}

/// Why the body cannot grow to `bytes`; otherwise there is room for it.
std::optional<Problem> KeyedAnswer::cannot_hold(std::size_t bytes) {
  auto& body = request_->body;
  if (bytes > config_.max_request_body) {
    return Problem(Reason::body_too_large, "the limit of this operation is " +
                                               std::to_string(config_.max_request_body) + " bytes");
  }
  if (bytes <= body.capacity()) return std::nullopt;
  const auto size = std::min(std::max(bytes, 2 * body.size()), config_.max_request_body);
  if (!request_->memory.grow_to(size)) {
    return Problem(Reason::overloaded, "no memory is free for the request body");
  }
  body.reserve(size);
  return std::nullopt;
}

Async<bool> KeyedAnswer::read_body() {
  const auto& limits = client_.settings().config.limits;
  const auto announced = client_.parser().content_length().value_or(0);
  std::optional<Problem> refused = cannot_hold(
      announced > config_.max_request_body ? announced : std::min<std::size_t>(announced, 65536));
  if (!refused) {
    const bool invited = co_await client_.invite_body();
    if (!invited) co_return false;
  }
  const auto began = core_.loop.now();
  while (!refused && !client_.is_request_read()) {
    const auto fed = client_.poll_body();
    if (fed.step == http::Step::error) {
      refused = http::problem_of(client_.parser().error());
    } else if (fed.step == http::Step::body) {
      refused = cannot_hold(request_->body.size() + fed.body.size());
      if (!refused) request_->body.append(fed.body);
    } else if (fed.step == http::Step::need_more) {
      const auto earned = std::chrono::seconds(request_->body.size() / limits.body_rate);
      const auto left = began + limits.body_time + earned - core_.loop.now();
      client_.stream().expires_after(std::max<Duration>(left, Duration{0}));
      const IoResult got = co_await client_.fill(Buffer::small);
      if (got.status == IoStatus::timed_out)
        refused = Problem(Reason::request_timeout, "the body came too slowly");
      if (!got.ok() && !refused) {
        client_.close_after_answer();  // Half a request: no claim, nothing forwarded.
        co_return false;
      }
    }
  }
  if (!refused) co_return true;
  co_await refuse(std::move(*refused));
  co_return false;
}

Async<bool> KeyedAnswer::compute_fingerprint() {
  request_->head = std::move(client_.request());
  const std::optional<Unusable> unusable = request_->compute();
  if (!unusable) co_return true;
  Problem problem(Reason::body_unusable, unusable->reason);
  co_await refuse(std::move(problem));
  co_return false;
}

Async<> KeyedAnswer::refuse(Problem problem) { co_await answer_problem(client_, problem); }

// --- The claim.

void KeyedAnswer::choose_in_flight() {
  in_flight_ = config_.in_flight;
  wait_ = config_.wait;
  const auto preferred = http::parse_prefer(request_->head.headers);
  if (preferred.respond_async) {
    in_flight_ = InFlight::operation;
    applied_ = "respond-async";
  } else if (preferred.wait && in_flight_ != InFlight::operation) {
    in_flight_ = InFlight::wait;
    wait_ = std::min(*preferred.wait, config_.wait);
    applied_ = "wait";
  }
}

Async<std::optional<Begun>> KeyedAnswer::begin() {
  BeginRequest begin{*scope_, config_.policies, in_flight_, wait_, config_.store_grace, request_};
  Delivery<std::optional<Begun>> delivery(core_.loop);
  ClientWatch watch(client_, delivery);
  const auto ticket = core_.engine.begin(
      std::move(begin), [&delivery](Begun begun) { delivery.set(std::move(begun)); });
  watch.watch(ticket);
  std::optional<Begun> begun = co_await delivery;
  co_return begun;
}

// --- The answer.

Async<> KeyedAnswer::answer(Begun begun) {
  if (auto* execute = std::get_if<begun::Execute>(&begun)) {
    std::unique_ptr<Execution> execution = std::move(execute->execution);
    co_await execute_owned(std::move(execution));
    co_return;
  }
  if (const auto* replay = std::get_if<begun::Replay>(&begun)) {
    const RecordPtr record = replay->record;
    const auto host = request_->head.headers.first("Host").value_or("");
    std::string target = current_target(config_, *record, host);
    if (in_flight_ == InFlight::operation) {
      co_await answer_accepted(record->operation_id);
    } else if (!target.empty()) {
      co_await answer_current(*record, std::move(target));
    } else {
      const ReplayAs as(replay->resolved, applied_, false);
      co_await answer_replay(client_, request_->head.headers, *record, as);
    }
    co_return;
  }
  if (const auto* running = std::get_if<begun::InProgress>(&begun);
      running != nullptr && in_flight_ == InFlight::operation) {
    co_await answer_accepted(running->operation_id);
    co_return;
  }
  const auto* unavailable = std::get_if<begun::Unavailable>(&begun);
  if (unavailable != nullptr && unavailable->error.code != ErrorCode::in_doubt &&
      config_.on_store_failure == OnStoreFailure::open &&
      config_.policies.on_lease_expiry != OnLeaseExpiry::takeover) {
    co_await execute_owned(nullptr);
    co_return;
  }
  Problem problem = duplicate_problem(begun, config_);
  co_await refuse(std::move(problem));
}

Async<> KeyedAnswer::execute_owned(std::unique_ptr<Execution> execution) {
  if (execution) generation_ = execution->record().generation;
  if (execution && in_flight_ == InFlight::operation) {
    const OperationId id = execution->record().operation_id;
    Async<> unattended = execute_unattended(core_, request_, std::move(execution));
    core_.loop.spawn(std::move(unattended));
    co_await answer_accepted(id);
    co_return;
  }
  Executed executed = co_await execute(core_, request_, std::move(execution));
  reached(Point::before_answer);
  if (auto* problem = std::get_if<Problem>(&executed)) {
    co_await answer_problem(client_, *problem);
  } else if (auto* duplicate = std::get_if<Begun>(&executed)) {
    Begun begun = std::move(*duplicate);
    co_await answer(std::move(begun));
  } else {
    UpstreamAnswer answer = std::move(std::get<UpstreamAnswer>(executed));
    co_await pass_on(std::move(answer));
  }
  reached(Point::answer_sent);
}

Async<> KeyedAnswer::pass_on(UpstreamAnswer answer) {
  http::ResponseHead& head = answer.head;
  if (answer.marks) {
    http::add_marks(head.headers, *answer.marks);
    client_.event().outcome = http::name(answer.marks->status);
  }
  if (!applied_.empty()) head.headers.add("Preference-Applied", applied_);
  const bool has_body = head.status != 204 && head.status != 304;
  if (!answer.rest) {
    const bool compress = client_.settings().config.compress;
    BytesView body = answer.body;
    Bytes changed;
    if (!fit_to_client(request_->head.headers, head.status, compress, head.headers, body,
                       changed)) {
      Problem problem(Reason::not_acceptable);
      co_await refuse(std::move(problem));
      co_return;
    }
    head.headers.remove("Content-Length");
    if (has_body) head.headers.add("Content-Length", std::to_string(body.size()));
    co_await client_.answer(head, body);
    co_return;
  }
  co_await stream(answer);
}

/// The record is settled without the body, so it may leave as it comes.
Async<> KeyedAnswer::stream(UpstreamAnswer& answer) {
  const auto framing = answer.rest->parser().framing();
  const bool bounded = framing == http::Framing::length || framing == http::Framing::none;
  const AnswerFraming to_client = client_.answer_framing(bounded);
  client_.finish_head(answer.head.headers, to_client);
  client_.event().status = answer.head.status;
  std::string out;
  http::append_head(out, answer.head);
  if (to_client.chunked) {
    http::append_chunk(out, answer.body);
  } else {
    out.append(answer.body);
  }
  answer.body = Bytes();
  const Relayed relayed =
      co_await relay_body(client_, *answer.rest, out, to_client.chunked, config_.times.answer);
  if (relayed == Relayed::upstream_failed) {
    client_.close_after_answer();
    client_.stream().reset();
  }
}

/// The body was read to look for a key, and there is none: forwarded once, like any other.
Async<> KeyedAnswer::forward_unkeyed() {
  request_->head = std::move(client_.request());
  Executed executed = co_await execute(core_, request_, nullptr);
  if (auto* answered = std::get_if<UpstreamAnswer>(&executed)) {
    UpstreamAnswer answer = std::move(*answered);
    answer.marks.reset();
    co_await pass_on(std::move(answer));
    co_return;
  }
  Problem problem(Reason::upstream_failed);
  problem.keyed = false;
  co_await answer_problem(client_, problem);
}

/// With `replay = "resource"`: what the operation made, as it is now, by the caller's own leave.
Async<> KeyedAnswer::answer_current(const Record& record, std::string target) {
  http::RequestHead& get = client_.request();
  get = std::move(request_->head);
  get.method = "GET";
  get.target = std::move(target);
  const auto& keys = request_->operation().keys;
  get.headers.remove_if([&](const http::HeaderLine& line) {
    return http::istarts_with(line.name, "Content-") || http::istarts_with(line.name, "If-") ||
           http::iequals(line.name, "Range") || http::iequals(line.name, "Expect") ||
           http::iequals(line.name, "Prefer") || keys.contains(line.name);
  });
  ProxyRules rules;
  rules.upstream.matched = true;
  http::Marks marks;
  marks.status = http::IdempotencyStatus::replayed;
  marks.expires = record.expires;
  http::add_marks(rules.marks, marks);
  rules.marks.add("Idempotency-Representation", "current");
  rules.marks.add("Cache-Control", "no-store");
  client_.event().outcome = http::name(marks.status);
  co_await proxy(client_, rules);
}

Async<> KeyedAnswer::answer_accepted(const OperationId& id) {
  http::ResponseHead head;
  head.status = 202;
  head.headers.add("Location", operation_url(id));
  head.headers.add("Cache-Control", "no-store");
  head.headers.add("Retry-After", "1");
  http::Marks marks;
  marks.status = http::IdempotencyStatus::in_progress;
  http::add_marks(head.headers, marks);
  if (!applied_.empty()) head.headers.add("Preference-Applied", applied_);
  head.headers.add("Content-Length", "0");
  client_.event().outcome = http::name(marks.status);
  co_await client_.answer(head, no_body);
}

}  // namespace

Async<> answer_matched(ClientConnection& client, const Matched& matched) {
  const Operation& operation = *matched.operation;
  const KeyConfig& config = operation.config.key;
  http::KeyFound key = http::find_key(client.request().headers, operation.keys);
  if (std::holds_alternative<http::key::Absent>(key) && !config.required && !config.member) {
    ProxyRules rules;
    rules.upstream.matched = true;
    rules.upstream.keys = operation.keys;
    co_await proxy(client, rules);
    co_return;
  }
  KeyedAnswer answer(client, matched);
  co_await answer.run(std::move(key));
}

Async<> answer_unmatched(ClientConnection& client) {
  const auto& settings = client.settings();
  const auto& lines = client.request().headers;
  const bool keyed = std::any_of(lines.begin(), lines.end(), [&](const http::HeaderLine& line) {
    return settings.is_key_header(line.name);
  });
  if (keyed) client.core().events.unmatched_keyed();
  if (keyed && settings.config.unmatched_key == UnmatchedKey::refuse) {
    const Problem problem(Reason::not_idempotent_here);
    co_await answer_problem(client, problem);
    co_return;
  }
  const ProxyRules rules;
  co_await proxy(client, rules);
}

}  // namespace einmal::gateway
