#include "einmal/engine/beginning.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "einmal/engine/ownership.hpp"

namespace einmal::detail {

namespace {

/// A request whose record keeps changing its profile between two reads is turned away.
constexpr int most_other_profiles = 4;

RecordPtr shared(Record& record) { return std::make_shared<const Record>(std::move(record)); }

Error claims_no_more() {
  return {ErrorCode::corrupt,
          "store: it handed out an older generation than before, so it has lost commits; run "
          "`einmal migrate --after-restore` and restart this process"};
}

}  // namespace

Beginning::Beginning(Desk& desk, BeginRequest request, std::function<void(Begun)> done)
    : Call(desk.mailbox, StoreCall::claim,
           request::Transition{std::move(request.scope), event::Claim{}, nullptr, {}}),
      desk_(desk),
      policies_(std::move(request.policies)),
      in_flight_(request.in_flight),
      wait_(request.wait),
      store_grace_(request.store_grace),
      source_(std::move(request.fingerprint)),
      done_(std::move(done)),
      ticket_(desk.tickets.issue(*this)),
      timer_(desk.timers, [this] { on_timer(); }),
      backoff_(milliseconds(20), seconds(1)),
      began_(desk.now()),
      owner_(OwnerToken::draw(desk.random)) {
  desk_.beginnings.push_back(*this);
  count_as(CountedAs::claim);
}

Beginning::~Beginning() {
  if (!detached_) desk_.tickets.retire(ticket_);
}

void Beginning::detach() {
  desk_.tickets.retire(ticket_);
  desk_.watches.leave(*this);
  List<Beginning, Beginning>::remove(*this);
  timer_.cancel();
  done_ = nullptr;
  source_.reset();
  detached_ = true;
}

void Beginning::count_as(CountedAs what) {
  if (counted_ == CountedAs::claim) --desk_.load.claims;
  if (counted_ == CountedAs::background) --desk_.load.background;
  counted_ = what;
  if (counted_ == CountedAs::claim) ++desk_.load.claims;
  if (counted_ == CountedAs::background) ++desk_.load.background;
}

void Beginning::start() {
  if (desk_.draining) return answer_soon(begun::Draining{}, BeginOutcome::draining);
  if (desk_.generations.tripped()) {
    return answer_soon(begun::Unavailable{claims_no_more()}, BeginOutcome::unavailable);
  }
  profile_ = source_->profile();
  fingerprint_ = source_->fingerprint();
  if (desk_.quotas.within(scope())) return claim();
  phase_ = Phase::asking_quota;
  timer_.set(deadline());
  desk_.quotas.ask(scope(), [&desk = desk_, ticket = ticket_](Quotas::Verdict verdict) {
    if (Beginning* asking = desk.tickets.find(ticket)) asking->quota_checked(verdict);
  });
}

void Beginning::quota_checked(Quotas::Verdict verdict) {
  if (verdict) return answer(*verdict, BeginOutcome::over_quota, nullptr);
  claim();
}

void Beginning::claim() {
  phase_ = Phase::claiming;
  timer_.set(deadline());
  transition().event = claim_event();
  transition().profile = profile_;
  const bool first = !seen_before_;
  if (first) seen_before_ = desk_.generations.highest();
  submit();
  if (first) desk_.observer.reached(Point::claim_submitted, scope(), Generation{});
}

/// The operation id is drawn for each send: if an earlier one made a record that somebody freed
/// since, this is another operation.
Event Beginning::claim_event() {
  return event::Claim{fingerprint_, policies_, owner_, OperationId::draw(desk_.random), {}};
}

void Beginning::answered(Result<Answer> answer) {
  if (phase_ == Phase::withdrawing) return withdrawal_answered(std::move(answer));
  claim_answered(std::move(answer));
}

void Beginning::claim_answered(Result<Answer> answer) {
  if (!answer) {
    in_doubt_ = in_doubt_ || answer.error().code == ErrorCode::in_doubt;
    if (!in_doubt_) {
      return this->answer(begun::Unavailable{std::move(answer.error())}, BeginOutcome::unavailable,
                          nullptr);
    }
    timer_.set(std::min(deadline(), desk_.now() + backoff_.next(desk_.random)));
    return;
  }
  in_doubt_ = false;
  if (auto* decision = std::get_if<Decision>(&*answer)) {
    return std::visit([this](auto& d) { on(d); }, *decision);
  }
  on(*answer);
}

template <class Other>
void Beginning::on(Other&) {
  answer(begun::Unavailable{{ErrorCode::internal, "store: a claim was not answered as a claim"}},
         BeginOutcome::unavailable, nullptr);
}

void Beginning::on(decision::Execute& execute) {
  if (number(execute.record.generation) <= number(*seen_before_)) {
    return refuse_generation(std::move(execute.record));
  }
  desk_.generations.saw(execute.record.generation);
  if (execute.record.attempts == 1) desk_.quotas.created(scope());
  auto report = this->report(BeginOutcome::execute, &execute.record);
  report.takeover = execute.record.attempts > 1;
  desk_.observer.reached(Point::claim_durable, scope(), execute.record.generation);
  desk_.observer.begun(report);
  auto* ownership = new Ownership(desk_, std::move(transition().scope), std::move(execute.record),
                                  sent(), store_grace_);
  const auto done = std::move(done_);
  count_as(CountedAs::nothing);
  delete this;
  done(begun::Execute{ownership->handle()});
}

void Beginning::on(decision::Replay& replay) {
  desk_.generations.saw(replay.record.generation);
  const RecordPtr record = shared(replay.record);
  const bool resolved =
      record->settled_by == SettledBy::operator_ || record->settled_by == SettledBy::reconciler;
  answer(begun::Replay{record, resolved}, BeginOutcome::replay, record.get());
}

void Beginning::on(decision::Mismatch& mismatch) {
  desk_.generations.saw(mismatch.record.generation);
  answer(begun::Mismatch{mismatch.record.operation_id}, BeginOutcome::mismatch, &mismatch.record);
}

void Beginning::on(decision::Uncertain& uncertain) {
  desk_.generations.saw(uncertain.record.generation);
  const RecordPtr record = shared(uncertain.record);
  answer(begun::Uncertain{record}, BeginOutcome::uncertain, record.get(), uncertain.entered);
}

void Beginning::on(decision::Gone& gone) {
  desk_.generations.saw(gone.record.generation);
  const RecordPtr record = shared(gone.record);
  answer(begun::Gone{record}, BeginOutcome::gone, record.get());
}

void Beginning::on(decision::OtherProfile& other) {
  if (++other_profiles_ > most_other_profiles) {
    return answer(begun::Unavailable{{ErrorCode::unavailable,
                                      "store: the record changes its fingerprint profile faster "
                                      "than it can be compared; try again"}},
                  BeginOutcome::unavailable, nullptr);
  }
  if (auto known = desk_.profiles.find(other.profile)) return claim_under(std::move(known));
  phase_ = Phase::reading_profile;
  SmallCall::send(desk_.mailbox, StoreCall::read, request::ReadProfile{other.profile},
                  [&desk = desk_, ticket = ticket_, id = other.profile](Result<Answer> answer) {
                    if (Beginning* reading = desk.tickets.find(ticket)) {
                      reading->profile_read(id, answer);
                    }
                  });
}

void Beginning::profile_read(const Digest& id, const Result<Answer>& answer) {
  if (!answer) {
    return this->answer(begun::Unavailable{answer.error()}, BeginOutcome::unavailable, nullptr);
  }
  const auto* found = std::get_if<answer::FoundProfile>(&*answer);
  if (!found || !found->definition) {
    return this->answer(begun::Incomparable{}, BeginOutcome::incomparable, nullptr);
  }
  auto profile = std::make_shared<const Profile>(Profile{id, *found->definition});
  desk_.profiles.keep(profile);
  claim_under(std::move(profile));
}

void Beginning::claim_under(std::shared_ptr<const Profile> profile) {
  const auto digest = source_->digest_under(*profile);
  if (!digest) return answer(begun::Incomparable{}, BeginOutcome::incomparable, nullptr);
  fingerprint_ = Fingerprint{profile->id, *digest};
  profile_ = std::move(profile);
  claim();
}

void Beginning::on(decision::InProgress& running) {
  const Record& record = running.record;
  desk_.generations.saw(record.generation);
  awaited_ = record.operation_id;
  const BootTime wait_end = began_ + wait_;
  const bool wait = in_flight_ == InFlight::wait && wait_end > desk_.now() && !desk_.draining;
  if (!wait) {
    return answer(in_progress(running.age, running.lease_left), BeginOutcome::in_progress, &record);
  }
  switch (desk_.watches.join(*this, scope(), awaited_)) {
    case Watches::Joined::yes:
      break;
    case Watches::Joined::queue_full:
      return answer(begun::TooManyWaiters{scattered_delay(desk_.random)},
                    BeginOutcome::too_many_waiters, &record);
    case Watches::Joined::over_quota:
      return answer(begun::OverQuota{scattered_delay(desk_.random)}, BeginOutcome::over_quota,
                    &record);
  }
  phase_ = Phase::waiting;
  count_as(CountedAs::nothing);
  wait_began_ = desk_.now();
  awaited_age_ = running.age;
  timer_.set(wait_end);
  desk_.observer.wait_started(scope());
}

begun::InProgress Beginning::in_progress(Duration age, std::optional<Duration> lease_left) {
  return {awaited_, in_progress_delay(desk_.random, age, lease_left)};
}

void Beginning::heard(const Heard& news) {
  if (const auto* settled = std::get_if<heard::Settled>(&news)) {
    const RecordPtr& record = settled->record;
    if (record->fingerprint != fingerprint_) {
      return answer(begun::Mismatch{record->operation_id}, BeginOutcome::mismatch, record.get());
    }
    if (settled->condition == Condition::tombstone) {
      return answer(begun::Gone{record}, BeginOutcome::gone, record.get());
    }
    const bool resolved =
        record->settled_by == SettledBy::operator_ || record->settled_by == SettledBy::reconciler;
    return answer(begun::Replay{record, resolved}, BeginOutcome::replay, record.get());
  }
  if (const auto* uncertain = std::get_if<heard::Uncertain>(&news)) {
    return answer(begun::Uncertain{uncertain->record}, BeginOutcome::uncertain,
                  uncertain->record.get());
  }
  if (std::holds_alternative<heard::Released>(news)) {
    return answer(begun::Released{scattered_delay(desk_.random)}, BeginOutcome::released, nullptr);
  }
  answer(in_progress(seconds(1), std::nullopt), BeginOutcome::in_progress, nullptr);
}

void Beginning::on_timer() {
  switch (phase_) {
    case Phase::answering: {
      auto soon = std::move(*soon_);
      return answer(std::move(soon.first), soon.second, nullptr);
    }
    case Phase::asking_quota:
    case Phase::reading_profile:
      return answer(begun::Unavailable{{ErrorCode::unavailable,
                                        "store: no answer within the store deadline; try again"}},
                    BeginOutcome::unavailable, nullptr);
    case Phase::claiming:
      if (desk_.now() < deadline()) return claim();
      return give_up(
          begun::Unavailable{{ErrorCode::in_doubt,
                              "store: no answer to the claim within the store deadline; nothing "
                              "was sent downstream, try the same key again"}},
          BeginOutcome::unavailable);
    case Phase::waiting: {
      const Duration age = awaited_age_ + (desk_.now() - *wait_began_);
      desk_.watches.leave(*this);
      return answer(in_progress(age, std::nullopt), BeginOutcome::in_progress, nullptr);
    }
    case Phase::withdrawing:
      return try_to_withdraw();
  }
}

// --- nobody listens any more

void Beginning::drop() {
  desk_.observer.begun(report(BeginOutcome::dropped, nullptr));
  done_ = nullptr;
  if (phase_ == Phase::claiming) return withdraw();
  desk_.watches.leave(*this);
  nothing_left();
}

void Beginning::stop() {
  last_try_ = true;
  if (phase_ == Phase::withdrawing) {
    if (!at_store()) try_to_withdraw();
    return;
  }
  if (phase_ == Phase::claiming) return give_up(begun::Draining{}, BeginOutcome::draining);
  desk_.watches.leave(*this);
  answer(begun::Draining{}, BeginOutcome::draining, nullptr);
}

void Beginning::give_up(Begun answer, BeginOutcome outcome) {
  desk_.observer.begun(report(outcome, nullptr));
  const auto done = std::move(done_);
  withdraw();
  done(std::move(answer));
}

void Beginning::refuse_generation(Record record) {
  if (!desk_.generations.tripped()) {
    desk_.generations.trip();
    desk_.observer.alarm(Alarm::generation_regressed,
                         "generation " + std::to_string(number(record.generation)) + " after " +
                             std::to_string(number(*seen_before_)));
  }
  held_ = std::move(record);
  give_up(begun::Unavailable{claims_no_more()}, BeginOutcome::unavailable);
}

/// What the claim took, or may have taken, goes back: nothing was sent downstream. The claim is
/// repeated rather than read, since only a step of the same scope waits for an earlier one that is
/// still on its way.
void Beginning::withdraw() {
  phase_ = Phase::withdrawing;
  timer_.cancel();
  desk_.tickets.retire(ticket_);
  count_as(CountedAs::nothing);
  if (desk_.room_in_background()) {
    count_as(CountedAs::background);
  } else {
    last_try_ = true;
  }
  if (at_store()) return;
  if (!in_doubt_ && !held_) return nothing_left();
  try_to_withdraw();
}

void Beginning::try_to_withdraw() {
  timer_.cancel();  // A stop may come before the next try was due.
  if (!held_) {
    transition().event = claim_event();
    transition().profile = profile_;
    return submit();
  }
  set_kind(StoreCall::finish);
  transition().profile.reset();
  if (held_->attempts > 1) {
    // Taken over, and given back unused: a release would make it uncertain for good.
    transition().event = event::Abandon{held_->generation, owner_};
  } else {
    transition().event = event::Release{held_->generation, owner_};
  }
  submit();
}

void Beginning::withdrawal_answered(Result<Answer> answer) {
  if (!answer) {
    in_doubt_ = in_doubt_ || answer.error().code == ErrorCode::in_doubt;
    if ((!in_doubt_ && !held_) || last_try_) return nothing_left();
    return timer_.set(desk_.now() + backoff_.next(desk_.random));
  }
  auto* decision = std::get_if<Decision>(&*answer);
  if (held_) {
    const auto* ok = decision ? std::get_if<decision::Ok>(decision) : nullptr;
    const bool released = ok && !ok->record;
    if (released) desk_.watches.changed(scope(), held_->operation_id, heard::Released{});
    return nothing_left();
  }
  auto* execute = decision ? std::get_if<decision::Execute>(decision) : nullptr;
  if (!execute) return nothing_left();
  held_ = std::move(execute->record);
  try_to_withdraw();
}

void Beginning::nothing_left() {
  Desk& desk = desk_;
  count_as(CountedAs::nothing);
  delete this;
  desk.something_ended();
}

// --- answers

void Beginning::answer_soon(Begun answer, BeginOutcome outcome) {
  phase_ = Phase::answering;
  soon_.emplace(std::move(answer), outcome);
  timer_.set(desk_.now());
}

BeginReport Beginning::report(BeginOutcome outcome, const Record* record) {
  BeginReport report{scope(), outcome, record};
  const BootTime now = desk_.now();
  report.took = now - began_;
  if (wait_began_) report.waited = now - *wait_began_;
  return report;
}

void Beginning::answer(Begun answer, BeginOutcome outcome, const Record* record, bool entered) {
  auto report = this->report(outcome, record);
  report.entered = entered;
  if (const auto* replay = std::get_if<begun::Replay>(&answer)) report.resolved = replay->resolved;
  desk_.observer.begun(report);
  const auto done = std::move(done_);
  nothing_left();
  done(std::move(answer));
}

}  // namespace einmal::detail
