#include "einmal/core/decide_fixture.hpp"

/// The rows of the events table that belong to any process, to operators and to reconcilers:
/// overdue, doubt, resolve, forget, sweep.
namespace einmal {
namespace {

using namespace decide_fixture;

const Policies takeover = promised(OnLeaseExpiry::takeover);

std::vector<std::optional<Record>> every_state_but(std::initializer_list<State> left_out) {
  std::vector<std::optional<Record>> records{std::nullopt};
  for (const Record& record :
       {processing(), uncertain(UncertainCause::lease_end), settled(State::completed),
        settled(State::failed), settled(State::freed)}) {
    if (std::find(left_out.begin(), left_out.end(), record.state) == left_out.end())
      records.emplace_back(record);
  }
  return records;
}

void expect_changed(const Step& step, const std::optional<Record>& record) {
  EXPECT_EQ(expect<decision::Changed>(step).record, record);
  expect_unchanged(step);
}

// --- overdue

TEST(Overdue, MakesUncertainExactlyWhenTheLeaseIsOverAndTheRecordPromisedIt) {
  const Step before = decide(processing(), event::Overdue{}, at(30s - 1us));
  expect<decision::Unchanged>(before);
  expect_unchanged(before);
  const Step step = decide(processing(), event::Overdue{}, at(30s));
  const Record record = expect_put(step, State::uncertain);
  EXPECT_EQ(expect<decision::BecameUncertain>(step).record, record);
  EXPECT_EQ(record.cause, UncertainCause::lease_end);
  expect_audit(step, AuditEvent::became_uncertain, State::processing, State::uncertain);
}

TEST(Overdue, LeavesTakeoverRecordsAndThoseWithoutLeaseAlone) {
  for (const Record& record : {processing(takeover), processing(without_lease())}) {
    const Step step = decide(record, event::Overdue{}, at(9000h));
    expect<decision::Unchanged>(step);
    expect_unchanged(step);
  }
}

TEST(Overdue, LeavesEveryOtherStateAlone) {
  for (const auto& record : every_state_but({State::processing})) {
    const Step step = decide(record, event::Overdue{}, at(9000h));
    expect<decision::Unchanged>(step);
    expect_unchanged(step);
  }
}

TEST(Overdue, CutsALeaseThatEndsTooFarAhead) {
  for (const Policies& policies : {promised(OnLeaseExpiry::uncertain), takeover}) {
    Record damaged = processing(policies);
    damaged.lease->end = boot_start + 9000h;
    const Step step = decide(damaged, event::Overdue{}, at(1s));
    expect<decision::Unchanged>(step);
    EXPECT_EQ(expect_put(step, State::processing).lease, (Lease{at(31s).boot, this_boot}));
  }
}

TEST(Overdue, WorksWhileExpiryIsPausedSinceLeasesDoNotRunOnTheWallClock) {
  Now jumped = at(30s);
  jumped.expiry_paused = true;
  expect<decision::BecameUncertain>(decide(processing(), event::Overdue{}, jumped));
}

// --- doubt

const event::Doubt doubt{Generation{7}};

TEST(Doubt, MakesARecordWithoutLeaseUncertain) {
  Record damaged = processing();
  damaged.lease.reset();
  for (const Record& record : {processing(without_lease()), damaged}) {
    const Step step = decide(record, doubt, at(1s));
    const Record doubted = expect_put(step, State::uncertain);
    EXPECT_EQ(expect<decision::Ok>(step).record, doubted);
    EXPECT_EQ(doubted.cause, UncertainCause::operator_doubt);
    expect_audit(step, AuditEvent::doubted, State::processing, State::uncertain);
  }
}

TEST(Doubt, LeavesARecordWithALeaseToItsLease) {
  expect_changed(decide(processing(), doubt, at(9000h)), processing());
}

TEST(Doubt, LeavesAnotherGenerationAndEveryOtherStateAlone) {
  const Record record = processing(without_lease());
  expect_changed(decide(record, event::Doubt{Generation{6}}, at(1s)), record);
  for (const auto& other : every_state_but({State::processing}))
    expect_changed(decide(other, doubt, at(1s)), other);
}

// --- resolve

event::Resolve resolve(event::Resolution to, bool force = false, std::uint64_t generation = 7) {
  event::Resolve event;
  event.generation = Generation{generation};
  event.to = to;
  if (to != event::Resolution::freed) event.result = result_of(201, "by hand");
  event.by = SettledBy::reconciler;
  event.force = force;
  return event;
}

TEST(Resolve, SettlesAnUncertainRecordWhateverTheCause) {
  for (const UncertainCause cause :
       {UncertainCause::lease_end, UncertainCause::outcome_unknown, UncertainCause::after_takeover,
        UncertainCause::owner_stopped, UncertainCause::operator_doubt}) {
    for (const auto& [to, state] : {std::pair(event::Resolution::completed, State::completed),
                                    std::pair(event::Resolution::failed, State::failed)}) {
      const Step step = decide(uncertain(cause, 3), resolve(to), at(5s));
      const Record record = expect_put(step, state);
      EXPECT_EQ(expect<decision::Ok>(step).record, record);
      EXPECT_EQ(record.settled_by, SettledBy::reconciler);
      EXPECT_EQ(record.result, result_of(201, "by hand"));
      EXPECT_EQ(record.settled, at(5s).wall);
      EXPECT_EQ(record.expires, at(5s + 1h).wall);
      EXPECT_EQ(record.cause, UncertainCause::none);
      expect_audit(step, AuditEvent::resolved, State::uncertain, state);
    }
  }
}

TEST(Resolve, ToFreeKeepsScopeGenerationAndOwnerUntilRetentionEnds) {
  Record seen = uncertain(UncertainCause::outcome_unknown);
  seen.result = result_of(502);
  const Step step = decide(seen, resolve(event::Resolution::freed), at(5s));
  const Record record = expect_put(step, State::freed);
  EXPECT_EQ(record.generation, Generation{7});
  EXPECT_EQ(record.owner, owner_a);
  EXPECT_EQ(record.result, std::nullopt);
  EXPECT_EQ(record.expires, at(5s + 1h).wall);
  expect_audit(step, AuditEvent::resolved, State::uncertain, State::freed);
}

TEST(Resolve, OfAProcessingRecordNeedsForce) {
  for (const auto to :
       {event::Resolution::completed, event::Resolution::failed, event::Resolution::freed}) {
    expect_changed(decide(processing(), resolve(to), at(9000h)), processing());
    const Step forced = decide(processing(), resolve(to, true), at(1s));
    expect<decision::Ok>(forced);
    EXPECT_EQ(forced.change, Step::Change::put);
    EXPECT_EQ(forced.record->lease, std::nullopt);
    EXPECT_EQ(forced.audit->before, State::processing);
  }
}

TEST(Resolve, ComparesTheGenerationThatWasLookedAt) {
  const Record record = uncertain(UncertainCause::outcome_unknown);
  for (const std::uint64_t generation : {6u, 8u})
    expect_changed(decide(record, resolve(event::Resolution::completed, true, generation), at(1s)),
                   record);
}

TEST(Resolve, NeverTouchesWhatIsSettledFreedOrAbsentForceOrNot) {
  for (const auto& record : every_state_but({State::processing, State::uncertain})) {
    for (const bool force : {false, true})
      expect_changed(decide(record, resolve(event::Resolution::completed, force), at(1s)), record);
  }
}

// --- forget

const event::Forget forget{Generation{7}};

TEST(Forget, RemovesWhatIsSettledExpiredOrFreedAndLeavesAnAuditRow) {
  for (const State state : {State::completed, State::failed, State::freed}) {
    for (const Duration when : {Duration(1s), Duration(2h), Duration(9h)}) {
      const Step step = decide(settled(state, refusing()), forget, at(when));
      EXPECT_EQ(expect<decision::Ok>(step).record, std::nullopt);
      expect_erased(step);
      expect_audit(step, AuditEvent::forgotten, state, std::nullopt);
    }
  }
}

TEST(Forget, NeverTouchesProcessingOrUncertain) {
  for (const Record& record :
       {processing(), processing(without_lease()), uncertain(UncertainCause::lease_end)})
    expect_changed(decide(record, forget, at(9000h)), record);
}

TEST(Forget, ComparesTheGenerationThatWasLookedAt) {
  expect_changed(decide(settled(State::completed), event::Forget{Generation{8}}, at(1s)),
                 settled(State::completed));
  expect_changed(decide(std::nullopt, forget, at(1s)), std::nullopt);
}

// --- sweep

TEST(Sweep, RemovesAnExpiredRecordExactlyAtItsEnd) {
  for (const State state : {State::completed, State::failed, State::freed}) {
    const Step before = decide(settled(state), event::Sweep{}, at(1h - 1us));
    expect<decision::Unchanged>(before);
    expect_unchanged(before);
    const Step step = decide(settled(state), event::Sweep{}, at(1h));
    EXPECT_EQ(expect<decision::Ok>(step).record, std::nullopt);
    expect_erased(step);
    EXPECT_FALSE(step.audit.has_value());
  }
}

TEST(Sweep, TakesTheResultFromATombstoneOnceAndRemovesItAtItsEnd) {
  const Record record = settled(State::completed, refusing());
  const Step step = decide(record, event::Sweep{}, at(1h));
  Record stripped = record;
  stripped.result.reset();
  EXPECT_EQ(expect_put(step, State::completed), stripped);
  EXPECT_EQ(expect<decision::Ok>(step).record, stripped);
  const Step again = decide(stripped, event::Sweep{}, at(3h - 1us));
  expect<decision::Unchanged>(again);
  expect_unchanged(again);
  expect_erased(decide(stripped, event::Sweep{}, at(3h)));
  expect_erased(decide(record, event::Sweep{}, at(3h)));
}

TEST(Sweep, RemovesAFreedRecordAtTheEndOfRetentionWithoutATombstone) {
  expect_erased(decide(settled(State::freed, refusing()), event::Sweep{}, at(1h)));
}

TEST(Sweep, NeverTouchesProcessingOrUncertain) {
  for (const Record& record :
       {processing(), processing(without_lease()), uncertain(UncertainCause::outcome_unknown)}) {
    const Step step = decide(record, event::Sweep{}, at(9000h));
    expect<decision::Unchanged>(step);
    expect_unchanged(step);
  }
  expect<decision::Unchanged>(decide(std::nullopt, event::Sweep{}, at(1h)));
}

TEST(Sweep, RestsWhileExpiryIsPaused) {
  Now jumped = at(9000h);
  jumped.expiry_paused = true;
  for (const State state : {State::completed, State::failed, State::freed})
    expect_unchanged(decide(settled(state), event::Sweep{}, jumped));
  expect_unchanged(decide(settled(State::completed, refusing()), event::Sweep{}, jumped));
}

}  // namespace
}  // namespace einmal
