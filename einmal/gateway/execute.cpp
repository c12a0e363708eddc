#include "einmal/gateway/execute.hpp"

#include "einmal/core/derived_key.hpp"
#include "einmal/gateway/answers.hpp"
#include "einmal/http/write.hpp"

namespace einmal::gateway {

namespace {

/// What was learnt from the upstream.
enum class Learnt : std::uint8_t {
  nothing_sent,  ///< Certainly no effect.
  no_answer,     ///< Sent at least in part, and no whole readable answer.
  timed_out,     ///< The same, and the connection may still bring one.
  head_only,     ///< The head says enough; the body is still to come.
  whole,
};

/// One attempt at an owned request.
class Attempt {
 public:
  Attempt(Core& core, std::shared_ptr<const KeyedRequest> request,
          std::unique_ptr<Execution> execution)
      : core_(core),
        request_(std::move(request)),
        config_(request_->config()),
        execution_(std::move(execution)),
        memory_(std::make_unique<Budget::Share>(core.budget)) {}

  Async<Executed> run();
  /// The answer was not there in time, and reading on is worth it.
  bool has_late_answer() const { return late_; }
  /// Reads on after `run`; settles or releases the record if a whole answer comes.
  Async<> read_late();

 private:
  // connecting and sending
  Async<Learnt> exchange();
  Async<bool> may_send();
  std::string head_bytes() const;
  Async<IoResult> send(const std::string& head);
  void note_sent(const IoResult& sent);

  // reading
  Async<Learnt> read_answer();
  Async<Learnt> read_body();
  Async<Learnt> fill();
  std::optional<BodyKept> cannot_keep() const;
  bool make_room(std::size_t more);

  // finishing
  Async<Executed> finish(Learnt learnt);
  Async<Executed> nothing_sent();
  Async<Executed> unknown(const std::string& detail, std::optional<int> upstream_status);
  Async<Executed> answered(bool whole);
  Async<Finished> make_durable(bool whole);
  Async<Finished> release();
  Async<Finished> mark_uncertain(std::optional<StoredResult> seen);
  StoredResult stored_result(bool whole) const;
  Executed pass_on(bool whole, http::IdempotencyStatus status, const Record* record);
  Executed not_recorded(Finished finished, bool whole);
  http::Problem uncertain_problem(const std::string& detail,
                                  std::optional<int> upstream_status) const;

  void reached(Point point) {
    if (execution_)
      core_.observer.reached(point, execution_->scope(), execution_->record().generation);
  }
  void tell_upstream(Learnt learnt);

  Core& core_;
  std::shared_ptr<const KeyedRequest> request_;
  const OperationConfig& config_;
  std::unique_ptr<Execution> execution_;
  UpstreamHandle upstream_;
  http::Problem why_nothing_{http::Reason::upstream_unreachable, "no connection could be made"};
  bool reused_ = false;
  bool request_sent_ = false;  ///< All of it.
  bool some_sent_ = false;     ///< At least a byte.
  bool late_ = false;
  BootTime began_{};
  http::ResponseHead answer_;
  http::Verdict verdict_;
  Bytes body_;
  std::unique_ptr<Budget::Share> memory_;
  BodyKept kept_ = BodyKept::kept;
};

Async<Executed> Attempt::run() {
  const Learnt learnt = co_await exchange();
  tell_upstream(learnt);
  Executed executed = co_await finish(learnt);
  co_return executed;
}

// --- Connecting and sending.

Async<Learnt> Attempt::exchange() {
  began_ = core_.clock.boot_now();
  Acquired acquired = co_await request_->settings().pool->acquire(config_.times.connect);
  if (!acquired.connection) {
    if (acquired.why == NoUpstream::queue_full)
      why_nothing_.detail = "too many requests wait for it";
    co_return Learnt::nothing_sent;
  }
  upstream_ = std::move(acquired.connection);
  reused_ = upstream_->is_reused();
  const std::string head = head_bytes();
  upstream_->parser().reset(request_->head.method);
  const bool may = co_await may_send();
  if (!may) {
    why_nothing_ = http::Problem(http::Reason::store_unavailable,
                                 "the lease could not be confirmed; nothing was sent");
    co_return Learnt::nothing_sent;
  }

  reached(Point::before_first_byte);
  upstream_->stream().expires_after(config_.times.answer);
  Async<IoResult> sending = send(head);
  sending.start();
  Learnt learnt = Learnt::no_answer;
  if (!sending.done()) {
    // The upstream does not take it at once: perhaps it answers without having read it all.
    learnt = co_await read_answer();
    if (!sending.done()) upstream_->stream().cancel();
    const IoResult sent = co_await sending;
    note_sent(sent);
  } else {
    const IoResult sent = co_await sending;
    note_sent(sent);
    if (some_sent_) learnt = co_await read_answer();
  }
  const bool unanswered = learnt == Learnt::no_answer || learnt == Learnt::timed_out;
  if (unanswered && !some_sent_) learnt = Learnt::nothing_sent;
  co_return learnt;
}

/// The late forward: a byte goes out only while the lease certainly holds.
Async<bool> Attempt::may_send() {
  if (!execution_ || execution_->may_send()) co_return true;
  Delivery<bool> confirmed(core_.loop);
  execution_->reconfirm([&confirmed](bool ok) { confirmed.set(ok); });
  const bool ok = co_await confirmed;
  co_return ok && execution_->may_send();
}

std::string Attempt::head_bytes() const {
  http::RequestHead head = request_->head;
  auto& lines = head.headers;
  http::UpstreamRules rules;
  rules.matched = rules.keyed = true;
  rules.keys = request_->operation().keys;
  http::prepare_for_upstream(lines, rules);
  lines.remove("Content-Length");
  lines.add("Content-Length", std::to_string(request_->body.size()));
  if (config_.upstream_key != UpstreamKey::original) {
    lines.remove_if([&](const http::HeaderLine& line) { return rules.keys.contains(line.name); });
  }
  if (execution_) {
    if (config_.upstream_key == UpstreamKey::derived)
      lines.add(rules.keys.header, derive_key(execution_->scope()));
    const auto& record = execution_->record();
    lines.add("Einmal-Operation-Id", record.operation_id.text());
    lines.add("Einmal-Fencing-Token", std::to_string(number(record.generation)));
  }
  if (request_->settings().config.upstream.reuse == UpstreamReuse::never)
    lines.add("Connection", "close");
  std::string bytes;
  bytes.reserve(768);
  http::append_head(bytes, head);
  return bytes;
}

Async<IoResult> Attempt::send(const std::string& head) {
  const IoResult sent = co_await upstream_->stream().write(head, request_->body);
  co_return sent;
}

void Attempt::note_sent(const IoResult& sent) {
  // Under TLS a failed write may have put part of a record on the wire.
  some_sent_ = sent.ok() || sent.bytes > 0 || upstream_->stream().is_tls();
  request_sent_ = sent.ok();
  if (some_sent_) reached(Point::first_byte_sent);
  if (request_sent_) reached(Point::request_sent);
}

// --- Reading.

Async<Learnt> Attempt::fill() {
  const IoResult got = co_await upstream_->fill();
  if (got.ok()) co_return Learnt::whole;
  co_return got.status == IoStatus::timed_out ? Learnt::timed_out : Learnt::no_answer;
}

/// Up to the head, over interim answers; then the body, unless the head is enough.
Async<Learnt> Attempt::read_answer() {
  auto& parser = upstream_->parser();
  for (;;) {
    const auto fed = upstream_->poll();
    if (fed.step == http::Step::error) co_return Learnt::no_answer;
    if (fed.step == http::Step::interim) continue;
    if (fed.step == http::Step::need_more) {
      const Learnt got = co_await fill();
      if (got != Learnt::whole) co_return got;
      continue;
    }
    break;
  }
  reached(Point::answer_started);
  answer_ = std::move(parser.head());
  verdict_ = http::classify(answer_.status, answer_.headers, request_->operation().outcomes);
  if (parser.framing() == http::Framing::tunnel) verdict_ = http::Verdict{};
  if (verdict_.outcome == http::Outcome::uncertain) co_return Learnt::head_only;
  if (const auto why = cannot_keep()) {
    kept_ = *why;
    co_return Learnt::head_only;
  }
  const Learnt learnt = co_await read_body();
  if (learnt == Learnt::whole) reached(Point::answer_complete);
  co_return learnt;
}

/// Why the body will certainly not be kept, as far as the head tells.
std::optional<BodyKept> Attempt::cannot_keep() const {
  const auto type = answer_.headers.first("Content-Type").value_or("");
  if (http::istarts_with(type, "text/event-stream")) return BodyKept::streaming;
  if (upstream_->parser().content_length().value_or(0) > config_.max_stored_body)
    return BodyKept::too_large;
  if (config_.replay == ReplayMode::resource && verdict_.outcome == http::Outcome::completed)
    return BodyKept::by_choice;
  return std::nullopt;
}

/// Grows the body's memory within the limits; false, and why in `kept_`, if it cannot.
bool Attempt::make_room(std::size_t more) {
  if (body_.size() + more > config_.max_stored_body) {
    kept_ = BodyKept::too_large;
    return false;
  }
  if (body_.capacity() >= body_.size() + more) return true;
  const auto announced = upstream_->parser().content_length().value_or(0);
  const auto wanted = std::max(body_.size() + more,
                               std::min<std::size_t>(2 * body_.size(), config_.max_stored_body));
  const auto size = std::max(wanted, std::min<std::size_t>(announced, Buffer::large));
  if (!memory_->grow_to(size)) {
    kept_ = BodyKept::no_room;
    return false;
  }
  body_.reserve(size);
  return true;
}

Async<Learnt> Attempt::read_body() {
  for (;;) {
    auto fed = upstream_->poll();
    if (fed.step == http::Step::need_more) {
      const IoResult got = co_await upstream_->fill();
      if (got.ok()) continue;
      if (got.status == IoStatus::timed_out) co_return Learnt::timed_out;
      fed = upstream_->parser().finish(got.status == IoStatus::end
                                           ? http::ResponseParser::End::clean
                                           : http::ResponseParser::End::broken);
    }
    if (fed.step == http::Step::complete) co_return Learnt::whole;
    if (fed.step == http::Step::error) co_return Learnt::no_answer;
    const bool room = make_room(fed.body.size());
    body_.append(fed.body);  // Also what does not fit: it was read and must be passed on.
    if (!room) co_return Learnt::head_only;
  }
}

// --- Finishing: first the store, then the client.

Async<Executed> Attempt::finish(Learnt learnt) {
  if (learnt == Learnt::nothing_sent) {
    Executed executed = co_await nothing_sent();
    co_return executed;
  }
  std::string why;
  std::optional<int> upstream_status;
  if (learnt == Learnt::timed_out) {
    why = "the upstream did not answer in time";
  } else if (learnt == Learnt::no_answer) {
    why = "the upstream ended the connection without a readable answer";
  } else if (verdict_.outcome == http::Outcome::uncertain) {
    why = "the upstream's answer does not tell";
    upstream_status = answer_.status;
  }
  if (why.empty()) {
    Executed executed = co_await answered(learnt == Learnt::whole);
    co_return executed;
  }
  late_ = learnt == Learnt::timed_out && execution_ != nullptr;
  Executed executed = co_await unknown(why, upstream_status);
  co_return executed;
}

Async<Executed> Attempt::nothing_sent() {
  upstream_.reset();
  Finished finished = co_await release();
  Executed executed = why_nothing_;
  if (std::holds_alternative<finished::Unrecorded>(finished)) {
    executed = http::Problem(http::Reason::store_unavailable,
                             "the upstream could not be reached, and neither could the store");
  } else if (!std::holds_alternative<finished::Recorded>(finished)) {
    executed = not_recorded(std::move(finished), false);
  }
  co_return executed;
}

Async<Executed> Attempt::unknown(const std::string& detail, std::optional<int> upstream_status) {
  if (!late_) upstream_.reset();
  std::optional<StoredResult> seen;
  if (upstream_status) seen = stored_result(false);
  Finished finished = co_await mark_uncertain(std::move(seen));
  Executed executed = uncertain_problem(detail, upstream_status);
  if (std::holds_alternative<finished::Lost>(finished)) {
    late_ = false;
    executed = not_recorded(std::move(finished), false);
  }
  co_return executed;
}

Async<Executed> Attempt::answered(bool whole) {
  Finished finished = co_await make_durable(whole);
  if (const auto* recorded = std::get_if<finished::Recorded>(&finished)) {
    auto status = http::IdempotencyStatus::executed;
    if (verdict_.outcome == http::Outcome::released) status = http::IdempotencyStatus::released;
    if (!execution_) status = http::IdempotencyStatus::unprotected;
    Executed executed = pass_on(whole, status, recorded->record.get());
    co_return executed;
  }
  Executed executed = not_recorded(std::move(finished), whole);
  co_return executed;
}

/// The outcome is not durable as it was asked for.
Executed Attempt::not_recorded(Finished finished, bool whole) {
  if (auto* lost = std::get_if<finished::Lost>(&finished)) {
    if (lost->record) return as_duplicate(*lost, execution_->record());
    return http::Problem(http::Reason::ownership_lost);
  }
  const auto* unrecorded = std::get_if<finished::Unrecorded>(&finished);
  if (unrecorded != nullptr && unrecorded->may_answer)
    return pass_on(whole, http::IdempotencyStatus::unrecorded, nullptr);
  std::optional<int> upstream_status;
  if (answer_.status != 0) upstream_status = answer_.status;
  return uncertain_problem("the outcome could not be recorded", upstream_status);
}

Executed Attempt::pass_on(bool whole, http::IdempotencyStatus status, const Record* record) {
  UpstreamAnswer answer;
  answer.head = std::move(answer_);
  http::prepare_for_client(answer.head.headers, true);
  answer.body = std::move(body_);
  answer.memory = std::move(memory_);
  http::Marks marks;
  marks.status = status;
  if (record != nullptr) marks.expires = record->expires;
  answer.marks = marks;
  const bool reusable = whole && request_sent_ && upstream_->parser().reusable();
  if (reusable) request_->settings().pool->give_back(std::move(upstream_));
  if (!whole) answer.rest = std::move(upstream_);
  return answer;
}

http::Problem Attempt::uncertain_problem(const std::string& detail,
                                         std::optional<int> upstream_status) const {
  http::Problem problem(http::Reason::outcome_uncertain, detail);
  problem.status = config_.uncertain_status;
  problem.upstream_status = upstream_status;
  problem.retry_after = retry_after_uncertain(config_);
  if (execution_) problem.operation = operation_url(execution_->record().operation_id);
  return problem;
}

StoredResult Attempt::stored_result(bool whole) const {
  StoredResult result;
  result.status = answer_.status;
  result.headers = http::serialize(http::stored_lines(answer_.headers, config_.unstored_headers));
  result.effect = verdict_.effect;
  result.body_kept = kept_;
  if (whole) result.body = body_;
  if (const auto location = answer_.headers.first("Location"))
    result.resource_id = std::string(*location);
  return result;
}

/// Settles or releases, as the verdict says.
Async<Finished> Attempt::make_durable(bool whole) {
  if (verdict_.outcome == http::Outcome::released) {
    Finished finished = co_await release();
    co_return finished;
  }
  Finished finished = finished::Recorded();
  if (!execution_) co_return finished;
  const auto final =
      verdict_.outcome == http::Outcome::failed ? event::Final::failed : event::Final::completed;
  Delivery<Finished> done(core_.loop);
  execution_->settle(final, stored_result(whole), verdict_.declared,
                     [&done](Finished with) { done.set(std::move(with)); });
  finished = co_await done;
  co_return finished;
}

Async<Finished> Attempt::release() {
  Finished finished = finished::Recorded();
  if (!execution_) co_return finished;
  Delivery<Finished> done(core_.loop);
  execution_->release([&done](Finished with) { done.set(std::move(with)); });
  finished = co_await done;
  co_return finished;
}

Async<Finished> Attempt::mark_uncertain(std::optional<StoredResult> seen) {
  Finished finished = finished::Recorded();
  if (!execution_) co_return finished;
  Delivery<Finished> done(core_.loop);
  execution_->mark_uncertain(UncertainCause::outcome_unknown, std::move(seen),
                             [&done](Finished with) { done.set(std::move(with)); });
  finished = co_await done;
  co_return finished;
}

Async<> Attempt::read_late() {
  upstream_->stream().expires_after(config_.times.late_answer);
  Learnt learnt = Learnt::no_answer;
  if (answer_.status == 0) {
    learnt = co_await read_answer();
  } else {
    learnt = co_await read_body();  // The time ran out within it.
  }
  const bool certain =
      learnt == Learnt::whole || (learnt == Learnt::head_only && kept_ != BodyKept::kept);
  if (!certain || verdict_.outcome == http::Outcome::uncertain) co_return;
  Finished finished = co_await make_durable(learnt == Learnt::whole);
  const auto* recorded = std::get_if<finished::Recorded>(&finished);
  if (recorded != nullptr && recorded->record) core_.events.late_answer(recorded->record->state);
}

void Attempt::tell_upstream(Learnt learnt) {
  UpstreamEvent told;
  told.operation = request_->operation().label;
  told.keyed = true;
  told.status = answer_.status;
  told.reused_connection = reused_;
  told.uncertain = learnt == Learnt::no_answer || learnt == Learnt::timed_out ||
                   (learnt == Learnt::head_only && verdict_.outcome == http::Outcome::uncertain);
  told.duration = std::chrono::duration_cast<Duration>(core_.clock.boot_now() - began_);
  core_.events.upstream_ended(told);
}

Async<> read_late(std::unique_ptr<Attempt> attempt) { co_await attempt->read_late(); }

}  // namespace

Async<Executed> execute(Core& core, std::shared_ptr<const KeyedRequest> request,
                        std::unique_ptr<Execution> execution) {
  auto attempt = std::make_unique<Attempt>(core, std::move(request), std::move(execution));
  Executed executed = co_await attempt->run();
  if (attempt->has_late_answer()) core.loop.spawn(read_late(std::move(attempt)));
  co_return executed;
}

}  // namespace einmal::gateway
