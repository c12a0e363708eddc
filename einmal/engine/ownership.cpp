#include "einmal/engine/ownership.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace einmal::detail {

namespace {

/// Between two tries to reach the store: within a third of the lease, so that a store that comes
/// back in time hears of the owner in time.
Duration longest_renew_pause(const Record& record) {
  constexpr Duration longest = seconds(5);
  return record.policies.lease ? std::min(longest, *record.policies.lease / 3) : longest;
}

}  // namespace

/// What the user holds. Outlives the engine harmlessly.
class Handle final : public Execution {
 public:
  explicit Handle(Ownership& ownership) : ownership_(&ownership) {}
  ~Handle() override {
    if (ownership_) ownership_->handle_gone();
  }
  void detach() {
    scope_ = ownership_->scope();
    record_ = ownership_->record();
    ownership_ = nullptr;
  }

  const Scope& scope() const override { return ownership_ ? ownership_->scope() : *scope_; }
  const Record& record() const override { return ownership_ ? ownership_->record() : *record_; }
  bool may_send() const override { return ownership_ && ownership_->may_send(); }
  void reconfirm(std::function<void(bool)> done) override {
    if (ownership_) ownership_->reconfirm(std::move(done));
  }
  void on_lost(std::function<void()> handler) override {
    if (ownership_) ownership_->on_lost(std::move(handler));
  }
  void settle(event::Final outcome, StoredResult result, bool declared,
              std::function<void(Finished)> done) override {
    if (!ownership_) return;
    const Finish asked = outcome == event::Final::completed ? Finish::complete : Finish::fail;
    const Record& own = record();
    ownership_->finish(
        asked, event::Settle{outcome, own.generation, own.owner, std::move(result), declared},
        std::move(done));
  }
  void release(std::function<void(Finished)> done) override {
    if (!ownership_) return;
    const Record& own = record();
    ownership_->finish(Finish::release, event::Release{own.generation, own.owner}, std::move(done));
  }
  void mark_uncertain(UncertainCause cause, std::optional<StoredResult> seen,
                      std::function<void(Finished)> done) override {
    if (!ownership_) return;
    const Record& own = record();
    ownership_->finish(Finish::mark_uncertain,
                       event::MarkUncertain{own.generation, own.owner, cause, std::move(seen)},
                       std::move(done));
  }

 private:
  Ownership* ownership_;
  std::optional<Scope> scope_;    ///< Once the engine is gone.
  std::optional<Record> record_;  ///< Likewise.
};

Ownership::Ownership(Desk& desk, Scope scope, Record record, BootTime sent, Duration store_grace)
    : Call(desk.mailbox, StoreCall::finish,
           request::Transition{std::move(scope), event::Overdue{}, nullptr, {}}),
      desk_(desk),
      record_(std::move(record)),
      store_grace_(store_grace),
      timer_(desk.timers, [this] { on_timer(); }),
      confirmed_(sent),
      renew_backoff_(milliseconds(50), longest_renew_pause(record_)),
      reconfirm_deadline_(desk.timers, [this] { end_reconfirmation(false); }),
      finish_backoff_(milliseconds(20),
                      std::min<Duration>(seconds(1), longest_renew_pause(record_))) {
  desk_.ownerships.push_back(*this);
  count_as(CountedAs::execution);
  if (lease()) beat_at(sent + *lease() / 3);
}

Ownership::~Ownership() {
  if (renewing_) renewing_->forget();
}

std::unique_ptr<Execution> Ownership::handle() {
  auto made = std::make_unique<Handle>(*this);
  handle_ = made.get();
  return made;
}

void Ownership::count_as(CountedAs what) {
  if (counted_ == CountedAs::execution) --desk_.load.executions;
  if (counted_ == CountedAs::background) --desk_.load.background;
  counted_ = what;
  if (counted_ == CountedAs::execution) ++desk_.load.executions;
  if (counted_ == CountedAs::background) ++desk_.load.background;
}

void Ownership::on_timer() {
  if (phase_ == Phase::running) {
    if (!lost_) return renew();
    if (const auto handler = std::exchange(lost_handler_, nullptr)) handler();
    return;
  }
  if (!unrecorded_ && desk_.now() >= asked_at_ + store_grace_) return grace_is_over();
  if (retry_at_ && desk_.now() >= *retry_at_) return send();
  set_finish_timer();
}

// --- the lease

bool Ownership::may_send() const {
  if (phase_ != Phase::running || lost_) return false;
  if (!lease()) return true;
  const Duration margin = std::min(desk_.limits.margin, *lease() / 4);
  return desk_.now() - confirmed_ < *lease() - margin;
}

void Ownership::beat_at(BootTime at) { timer_.set(std::max(at, desk_.now())); }

void Ownership::renew() {
  if (renewing_) return;
  const BootTime sent = desk_.now();
  renewing_ = SmallCall::send(
      desk_.mailbox, StoreCall::renew,
      request::Transition{scope(), event::Renew{record_.generation, record_.owner}, nullptr, {}},
      [this, sent](Result<Answer> answer) {
        renewing_ = nullptr;
        renewed(sent, std::move(answer));
      });
}

void Ownership::renewed(BootTime sent, Result<Answer> answer) {
  const auto* decision = answer ? std::get_if<Decision>(&*answer) : nullptr;
  if (decision && std::holds_alternative<decision::Lost>(*decision)) {
    desk_.observer.renewed(scope(), record_.generation, Renewal::lost);
    return lost();
  }
  if (!decision || !std::holds_alternative<decision::Ok>(*decision)) return renew_failed();
  desk_.observer.renewed(scope(), record_.generation, Renewal::confirmed);
  renew_backoff_.reset();
  confirmed_ = sent;
  if (lease()) beat_at(sent + *lease() / 3);
  if (!reconfirming_) return;
  if (may_send()) return end_reconfirmation(true);
  renew();
}

/// Silence of the store is no loss: the owner goes on and asks again.
void Ownership::renew_failed() {
  desk_.observer.renewed(scope(), record_.generation, Renewal::failed);
  beat_at(desk_.now() + renew_backoff_.next(desk_.random));
}

void Ownership::lost() {
  timer_.cancel();
  if (std::exchange(lost_, true)) return;
  desk_.observer.ownership_lost(scope(), record_.generation);
  const auto handler = std::exchange(lost_handler_, nullptr);
  const auto reconfirming = std::exchange(reconfirming_, nullptr);
  reconfirm_deadline_.cancel();
  // Either may end this execution, and with it this object.
  if (reconfirming) reconfirming(false);
  if (handler) handler();
}

void Ownership::on_lost(std::function<void()> handler) {
  lost_handler_ = std::move(handler);
  if (lost_ && phase_ == Phase::running) timer_.set(desk_.now());
}

void Ownership::reconfirm(std::function<void(bool)> done) {
  assert(!reconfirming_);
  reconfirming_ = std::move(done);
  if (phase_ != Phase::running || lost_) return reconfirm_deadline_.set(desk_.now());
  reconfirm_deadline_.set(desk_.now() + desk_.limits.store_deadline);
  renew();
}

void Ownership::end_reconfirmation(bool confirmed) {
  reconfirm_deadline_.cancel();
  if (const auto done = std::exchange(reconfirming_, nullptr)) done(confirmed);
}

// --- the end

void Ownership::handle_gone() {
  handle_ = nullptr;
  done_ = nullptr;
  lost_handler_ = nullptr;
  reconfirming_ = nullptr;
  if (next_) next_->done = nullptr;
  if (phase_ == Phase::running) {
    return finish(Finish::mark_uncertain,
                  event::MarkUncertain{record_.generation, record_.owner,
                                       UncertainCause::outcome_unknown, std::nullopt},
                  nullptr);
  }
  if (phase_ == Phase::finished) delete this;
}

void Ownership::stop() {
  switch (phase_) {
    case Phase::running:
      return finish(Finish::abandon, event::Abandon{record_.generation, record_.owner}, nullptr);
    case Phase::finishing:
      last_try_ = true;
      if (!at_store()) send();
      return;
    case Phase::finished:
      return;
  }
}

void Ownership::detach() {
  if (handle_) handle_->detach();
  handle_ = nullptr;
  timer_.cancel();
  reconfirm_deadline_.cancel();
  if (renewing_) std::exchange(renewing_, nullptr)->forget();
  done_ = nullptr;
  lost_handler_ = nullptr;
  reconfirming_ = nullptr;
  next_.reset();
  List<Ownership, Ownership>::remove(*this);
}

void Ownership::finish(Finish asked, Event event, Done done) {
  Wanted wanted{asked, std::move(event), std::move(done)};
  // A mark that was answered as unrecorded is still being written: what became known after all
  // follows it.
  const bool marking = asked_ == Finish::mark_uncertain && unrecorded_;
  if (phase_ == Phase::finishing && (asked_ == Finish::abandon || marking)) {
    next_ = std::move(wanted);
    return;
  }
  // Nor does a stop that gave the lease back keep its owner from saying how it ended.
  const bool may_follow =
      left_uncertain_ || asked_ == Finish::mark_uncertain || asked_ == Finish::abandon;
  const bool allowed = phase_ == Phase::running || (phase_ == Phase::finished && may_follow);
  assert(allowed);
  if (allowed) start(std::move(wanted));
}

void Ownership::start(Wanted wanted) {
  late_ = phase_ == Phase::finished;
  was_uncertain_ = left_uncertain_;
  phase_ = Phase::finishing;
  count_as(CountedAs::execution);
  // What the renewal on its way says is no news any more.
  if (renewing_) std::exchange(renewing_, nullptr)->forget();
  asked_ = wanted.asked;
  done_ = std::move(wanted.done);
  asked_at_ = desk_.now();
  in_doubt_ = unrecorded_ = left_uncertain_ = false;
  last_try_ = desk_.stopping;
  finish_backoff_.reset();
  if (const auto* settle = std::get_if<event::Settle>(&wanted.event)) {
    body_kept_ = settle->result.body_kept;
  }
  if (const auto* mark = std::get_if<event::MarkUncertain>(&wanted.event)) cause_ = mark->cause;
  transition().event = std::move(wanted.event);
  send();
  desk_.observer.reached(Point::settle_submitted, scope(), record_.generation);
}

void Ownership::send() {
  retry_at_.reset();
  set_finish_timer();
  submit();
}

void Ownership::set_finish_timer() {
  const BootTime grace_end = asked_at_ + store_grace_;
  if (unrecorded_ && !retry_at_) return timer_.cancel();
  BootTime at = unrecorded_ ? *retry_at_ : grace_end;
  if (retry_at_) at = std::min(at, *retry_at_);
  timer_.set(at);
}

void Ownership::answered(Result<Answer> answer) {
  auto* decision = answer ? std::get_if<Decision>(&*answer) : nullptr;
  if (decision) return decided(*decision);
  const ErrorCode code = answer ? ErrorCode::internal : answer.error().code;
  const bool settles = std::holds_alternative<event::Settle>(transition().event);
  if (code == ErrorCode::invalid && settles) return unstorable();
  failed(code == ErrorCode::in_doubt);
}

/// The store will never take this result. Its outcome was seen, so nobody may run the operation
/// again by lease end either: the record becomes uncertain.
void Ownership::unstorable() {
  transition().event = event::MarkUncertain{record_.generation, record_.owner,
                                            UncertainCause::outcome_unknown, std::nullopt};
  if (unrecorded_) return send();
  // Sent before the owner is told, who may end everything by then.
  send();
  grace_is_over();
}

/// Repeating is right after every failure: each of these steps is the same for the same owner,
/// however often it is made.
void Ownership::failed(bool in_doubt) {
  in_doubt_ = in_doubt_ || in_doubt;
  if (last_try_) {
    const bool told = unrecorded_;
    return end(FinishOutcome::given_up, finished::Unrecorded{!told && may_answer()}, std::nullopt);
  }
  retry_at_ = desk_.now() + finish_backoff_.next(desk_.random);
  set_finish_timer();
}

void Ownership::grace_is_over() {
  unrecorded_ = true;
  report(FinishOutcome::unrecorded);
  count_as(CountedAs::nothing);
  if (desk_.room_in_background()) {
    count_as(CountedAs::background);
  } else {
    last_try_ = true;
  }
  set_finish_timer();
  const auto done = std::exchange(done_, nullptr);
  const finished::Unrecorded unrecorded{may_answer()};
  if (last_try_ && !at_store()) end(FinishOutcome::given_up, unrecorded, std::nullopt);
  if (done) done(unrecorded);  // may end the handle, and with it this
}

bool Ownership::may_answer() const {
  return record_.attempts == 1 && record_.policies.on_lease_expiry != OnLeaseExpiry::takeover;
}

void Ownership::decided(Decision& decision) {
  if (auto* ok = std::get_if<decision::Ok>(&decision)) return recorded(ok->record);
  if (auto* uncertain = std::get_if<decision::BecameUncertain>(&decision)) {
    return became_uncertain(uncertain->record);
  }
  if (auto* lost = std::get_if<decision::Lost>(&decision)) return lost_at_the_end(*lost);
  failed(false);
}

void Ownership::recorded(std::optional<Record>& stored) {
  desk_.observer.reached(Point::settle_durable, scope(), record_.generation);
  if (!stored) {
    if (record_.attempts == 1) desk_.quotas.released(scope());
    return end(FinishOutcome::recorded, finished::Recorded{}, heard::Released{});
  }
  const auto record = std::make_shared<const Record>(std::move(*stored));
  std::optional<Heard> news;
  switch (record->state) {
    case State::completed:
      news = heard::Settled{record, Condition::completed};
      break;
    case State::failed:
      news = heard::Settled{record, Condition::failed};
      break;
    case State::uncertain:
      left_uncertain_ = true;
      desk_.quotas.became_uncertain(scope());
      news = heard::Uncertain{record};
      break;
    case State::processing:
      news = heard::StillRunning{};
      break;
    case State::freed:
      break;
  }
  end(FinishOutcome::recorded, finished::Recorded{record}, std::move(news));
}

void Ownership::became_uncertain(Record& stored) {
  const auto record = std::make_shared<const Record>(std::move(stored));
  left_uncertain_ = true;
  desk_.quotas.became_uncertain(scope());
  end(FinishOutcome::became_uncertain, finished::BecameUncertain{record}, heard::Uncertain{record});
}

void Ownership::lost_at_the_end(decision::Lost& lost) {
  // The first answer of a release was lost on its way: the record it removed is gone, or the key
  // belongs to another operation since.
  const bool other = !lost.record || lost.record->operation_id != record_.operation_id;
  if (asked_ == Finish::release && in_doubt_ && other) {
    std::optional<Record> nothing;
    return recorded(nothing);
  }
  if (!std::exchange(lost_, true)) desk_.observer.ownership_lost(scope(), record_.generation);
  if (asked_ == Finish::complete || asked_ == Finish::fail) {
    desk_.observer.late_result(scope(), record_.generation, lost.contradicts);
    if (lost.contradicts) {
      desk_.observer.alarm(Alarm::late_contradiction,
                           "generation " + std::to_string(number(record_.generation)) +
                               " of operation " + record_.operation_id.text());
    }
  }
  RecordPtr standing;
  if (lost.record && lost.condition != Condition::absent) {
    standing = std::make_shared<const Record>(std::move(*lost.record));
  }
  end(FinishOutcome::lost, finished::Lost{std::move(standing), lost.condition}, std::nullopt);
}

void Ownership::report(FinishOutcome outcome) {
  FinishReport report{scope(), record_, asked_, outcome};
  report.body_kept = body_kept_;
  report.cause = cause_;
  report.took = desk_.now() - asked_at_;
  report.late = late_;
  report.was_uncertain = was_uncertain_;
  report.background = unrecorded_ && outcome != FinishOutcome::unrecorded;
  desk_.observer.finished(report);
}

void Ownership::end(FinishOutcome outcome, Finished finished, std::optional<Heard> news) {
  report(outcome);
  Desk& desk = desk_;
  timer_.cancel();
  count_as(CountedAs::nothing);
  phase_ = Phase::finished;
  std::optional<Scope> watched;
  if (news && desk.watches.waiters() > 0) watched = scope();
  const OperationId operation = record_.operation_id;
  const auto done = std::exchange(done_, nullptr);
  if (next_) {
    Wanted next = std::move(*next_);
    next_.reset();
    start(std::move(next));
  } else if (!handle_) {
    delete this;
  }
  if (done) done(std::move(finished));
  if (watched) desk.watches.changed(*watched, operation, *news);
  desk.something_ended();
}

}  // namespace einmal::detail
