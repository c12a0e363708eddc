#include "einmal/core/decide_fixture.hpp"

/// The claim rows of the events table.
namespace einmal {
namespace {

using namespace decide_fixture;

const Policies takeover = promised(OnLeaseExpiry::takeover);

void expect_new_operation(const Step& step) {
  const auto& execute = expect<decision::Execute>(step);
  EXPECT_FALSE(execute.takeover);
  EXPECT_FALSE(execute.repeated);
  const Record record = expect_put(step, State::processing);
  EXPECT_EQ(record, execute.record);
  EXPECT_EQ(record.generation, Generation{100});
  EXPECT_EQ(record.owner, owner_b);
  EXPECT_EQ(record.operation_id, id_of<OperationId>('o'));
  EXPECT_EQ(record.attempts, 1u);
  EXPECT_EQ(record.settled, std::nullopt);
  EXPECT_EQ(record.expires, std::nullopt);
  EXPECT_EQ(record.result, std::nullopt);
  EXPECT_EQ(record.settled_by, SettledBy::nobody);
  EXPECT_EQ(record.cause, UncertainCause::none);
  EXPECT_FALSE(step.audit.has_value());
}

TEST(ClaimOfAnAbsentKey, Executes) {
  const Step step = decide(std::nullopt, claim(owner_b), at(5s));
  expect_new_operation(step);
  EXPECT_EQ(step.record->created, at(5s).wall);
  EXPECT_EQ(step.record->claimed, at(5s).wall);
  EXPECT_EQ(step.record->lease, (Lease{at(35s).boot, this_boot}));
  EXPECT_EQ(step.record->fingerprint, same);
}

TEST(ClaimOfAnAbsentKey, KeepsThePoliciesItWasClaimedUnder) {
  const Step step = decide(std::nullopt, claim(owner_b, same, refusing()), at(0s));
  EXPECT_EQ(step.record->policies, refusing());
}

TEST(ClaimOfAnAbsentKey, GrantsNoLeaseWhereNoneIsAskedFor) {
  const Step step = decide(std::nullopt, claim(owner_b, same, without_lease()), at(0s));
  EXPECT_EQ(step.record->lease, std::nullopt);
}

TEST(ClaimOfAFreedKey, ExecutesWhateverTheFingerprint) {
  for (const Fingerprint& fingerprint : {same, other_body, foreign_profile})
    expect_new_operation(decide(settled(State::freed), claim(owner_b, fingerprint), at(1s)));
}

TEST(ClaimOfAFreedKey, ExecutesUnderANewGenerationEvenForTheOwnerThatWasFreed) {
  const Step step = decide(settled(State::freed), claim(owner_a), at(1s));
  EXPECT_EQ(expect<decision::Execute>(step).record.generation, Generation{100});
  EXPECT_FALSE(expect<decision::Execute>(step).repeated);
}

TEST(ClaimAtTheEndOfRetention, ReplaysUntilTheLastMicrosecondAndExecutesFromThenOn) {
  for (const State state : {State::completed, State::failed}) {
    const Step before = decide(settled(state), claim(owner_b), at(1h - 1us));
    EXPECT_EQ(expect<decision::Replay>(before).record, settled(state));
    expect_unchanged(before);
    expect_new_operation(decide(settled(state), claim(owner_b), at(1h)));
    expect_new_operation(decide(settled(state), claim(owner_b, other_body), at(1h)));
    expect_new_operation(decide(settled(state), claim(owner_b, foreign_profile), at(1h)));
  }
}

TEST(ClaimAtTheEndOfRetention, ReplaysWhileExpiryIsPaused) {
  Now jumped = at(100h);
  jumped.expiry_paused = true;
  expect<decision::Replay>(decide(settled(State::completed), claim(owner_b), jumped));
  expect<decision::Replay>(decide(settled(State::completed, refusing()), claim(owner_b), jumped));
}

TEST(ClaimAtTheEndOfRetention, FollowsTheRecordsPromiseAndNotTheClaimants) {
  Policies shorter = promised(OnLeaseExpiry::uncertain);
  shorter.retention = 1s;
  expect<decision::Replay>(
      decide(settled(State::completed), claim(owner_b, same, shorter), at(30min)));
  expect<decision::Gone>(decide(settled(State::completed, refusing()), claim(owner_b), at(2h)));
}

TEST(ClaimOfATombstone, IsGoneUntilItsEndAndExecutesFromThenOn) {
  for (const State state : {State::completed, State::failed}) {
    const Record record = settled(state, refusing());
    for (const Duration when : {Duration(1h), Duration(3h - 1us)}) {
      const Step step = decide(record, claim(owner_b), at(when));
      EXPECT_EQ(expect<decision::Gone>(step).record, record);
      expect_unchanged(step);
    }
    expect_new_operation(decide(record, claim(owner_b), at(3h)));
  }
}

TEST(ClaimOfATombstone, IsGoneForItsFormerOwnerToo) {
  expect<decision::Gone>(decide(settled(State::completed, refusing()), claim(owner_a), at(2h)));
}

TEST(ClaimOfATombstone, StaysGoneOnceSweptEvenIfTheClockGoesBackOrExpiryPauses) {
  Record swept = settled(State::completed, refusing());
  swept.result.reset();
  expect<decision::Gone>(decide(swept, claim(owner_b), at(30min)));
  Now jumped = at(100h);
  jumped.expiry_paused = true;
  expect<decision::Gone>(decide(swept, claim(owner_b), jumped));
  expect_new_operation(decide(swept, claim(owner_b), at(3h)));
}

TEST(ClaimUnderAnotherProfile, NamesTheRecordsProfileWhateverTheLiveState) {
  Record tombstone = settled(State::completed, refusing());
  tombstone.expires = wall_start;
  for (const Record& record : {processing(), uncertain(UncertainCause::lease_end),
                               settled(State::completed), settled(State::failed), tombstone}) {
    const Step step = decide(record, claim(owner_a, foreign_profile), at(1s));
    EXPECT_EQ(expect<decision::OtherProfile>(step).profile, digest_of(1));
    expect_unchanged(step);
  }
}

TEST(ClaimWithAnotherFingerprint, IsAMismatchThatWinsOverEveryOtherAnswer) {
  Record tombstone = settled(State::completed, refusing());
  tombstone.expires = wall_start;
  Record overdue = processing(takeover);
  overdue.lease->end = boot_start;
  for (const Record& record :
       {processing(), processing(without_lease()), overdue, uncertain(UncertainCause::lease_end),
        uncertain(UncertainCause::outcome_unknown), settled(State::completed),
        settled(State::failed), tombstone}) {
    // Owner a is the record's own: not even its repetition is let through with another body.
    for (const OwnerToken& owner : {owner_a, owner_b}) {
      const Step step = decide(record, claim(owner, other_body, takeover), at(1s));
      EXPECT_EQ(expect<decision::Mismatch>(step).record, record);
      expect_unchanged(step);
    }
  }
}

TEST(ClaimOfASettledKey, ReplaysToEverybodyTheOwnerIncluded) {
  for (const State state : {State::completed, State::failed}) {
    for (const OwnerToken& owner : {owner_a, owner_b}) {
      const Step step = decide(settled(state), claim(owner), at(1s));
      EXPECT_EQ(expect<decision::Replay>(step).record, settled(state));
      expect_unchanged(step);
    }
  }
}

TEST(ClaimByTheSameOwner, IsItsOwnClaimAgainAndRestartsTheLease) {
  for (const Duration when : {Duration(10s), Duration(30s), Duration(2h)}) {
    const Step step = decide(processing(), claim(owner_a), at(when));
    const auto& execute = expect<decision::Execute>(step);
    EXPECT_TRUE(execute.repeated);
    EXPECT_FALSE(execute.takeover);
    Record expected = processing();
    expected.lease = Lease{at(when + 30s).boot, this_boot};
    EXPECT_EQ(expect_put(step, State::processing), expected);
    EXPECT_FALSE(step.audit.has_value());
  }
}

TEST(ClaimByTheSameOwner, UndoesAnUncertaintyThatOnlySilenceCaused) {
  const Step step = decide(uncertain(UncertainCause::lease_end), claim(owner_a), at(60s));
  EXPECT_TRUE(expect<decision::Execute>(step).repeated);
  const Record record = expect_put(step, State::processing);
  EXPECT_EQ(record.generation, Generation{7});
  EXPECT_EQ(record.cause, UncertainCause::none);
  EXPECT_EQ(record.lease, (Lease{at(90s).boot, this_boot}));
  expect_audit(step, AuditEvent::revived, State::uncertain, State::processing);
}

TEST(ClaimByTheSameOwner, DoesNotUndoAnUncertaintyThatSomebodySaw) {
  for (const UncertainCause cause :
       {UncertainCause::outcome_unknown, UncertainCause::after_takeover,
        UncertainCause::owner_stopped, UncertainCause::operator_doubt}) {
    const Step step = decide(uncertain(cause), claim(owner_a), at(1s));
    expect<decision::Uncertain>(step);
    expect_unchanged(step);
  }
}

TEST(ClaimByTheSameOwner, StaysATakeoverIfItWasOne) {
  const Step step = decide(processing(takeover, 2), claim(owner_a), at(1s));
  EXPECT_TRUE(expect<decision::Execute>(step).takeover);
  EXPECT_EQ(step.record->attempts, 2u);
}

TEST(ClaimByTheSameOwner, OfARecordWithoutLeaseGrantsNone) {
  const Step step = decide(processing(without_lease()), claim(owner_a), at(1s));
  EXPECT_TRUE(expect<decision::Execute>(step).repeated);
  EXPECT_EQ(step.record->lease, std::nullopt);
}

TEST(ClaimWhileTheLeaseRuns, IsInProgressAndSaysHowMuchIsLeft) {
  for (const Policies& policies : {promised(OnLeaseExpiry::uncertain), takeover}) {
    const Step step = decide(processing(policies), claim(owner_b, same, takeover), at(30s - 1us));
    EXPECT_EQ(expect<decision::InProgress>(step).record, processing(policies));
    EXPECT_EQ(expect<decision::InProgress>(step).lease_left, Duration(1));
    EXPECT_EQ(expect<decision::InProgress>(step).age, 30s - 1us);
    expect_unchanged(step);
  }
}

TEST(ClaimOfARecordWithoutLease, IsInProgressForEver) {
  Record damaged = processing(takeover);
  damaged.lease.reset();
  for (const Record& record : {processing(without_lease()), damaged}) {
    const Step step = decide(record, claim(owner_b, same, takeover), at(9000h));
    EXPECT_EQ(expect<decision::InProgress>(step).lease_left, std::nullopt);
    expect_unchanged(step);
  }
}

TEST(ClaimAfterTheLease, TakesOverWhereBothSidesPromisedIt) {
  const Step step = decide(processing(takeover, 3), claim(owner_b, same, takeover), at(30s));
  const auto& execute = expect<decision::Execute>(step);
  EXPECT_TRUE(execute.takeover);
  EXPECT_FALSE(execute.repeated);
  Record expected = processing(takeover, 4);
  expected.generation = Generation{100};
  expected.owner = owner_b;
  expected.claimed = at(30s).wall;
  expected.lease = Lease{at(60s).boot, this_boot};
  EXPECT_EQ(expect_put(step, State::processing), expected);
  EXPECT_EQ(execute.record, expected);
  expect_audit(step, AuditEvent::taken_over, State::processing, State::processing);
  EXPECT_EQ(step.audit->generation, Generation{100});
}

TEST(ClaimAfterTheLease, TakesOverUnderTheRecordsOwnPoliciesAndNotTheClaimants) {
  Policies shorter = takeover;
  shorter.lease = 1s;
  shorter.retention = 1s;
  const Step step = decide(processing(takeover), claim(owner_b, same, shorter), at(30s));
  EXPECT_EQ(step.record->policies, takeover);
  EXPECT_EQ(step.record->lease, (Lease{at(60s).boot, this_boot}));
}

TEST(ClaimAfterTheLease, IsUncertainUnlessBothSidesPromisedTakeover) {
  const Policies careful = promised(OnLeaseExpiry::uncertain);
  for (const auto& [record_side, claim_side] :
       {std::pair(careful, careful), std::pair(careful, takeover), std::pair(takeover, careful)}) {
    const Step step = decide(processing(record_side), claim(owner_b, same, claim_side), at(30s));
    const Record record = expect_put(step, State::uncertain);
    EXPECT_EQ(expect<decision::Uncertain>(step).record, record);
    EXPECT_TRUE(expect<decision::Uncertain>(step).entered);
    EXPECT_FALSE(
        expect<decision::Uncertain>(decide(record, claim(owner_b, same, claim_side), at(31s)))
            .entered);
    EXPECT_EQ(record.cause, UncertainCause::lease_end);
    EXPECT_EQ(record.generation, Generation{7});
    EXPECT_EQ(record.owner, owner_a);
    expect_audit(step, AuditEvent::became_uncertain, State::processing, State::uncertain);
  }
}

TEST(ClaimAfterAReboot, FindsTheLeaseOverWhateverTheNewBootClockSays) {
  Now rebooted = at(1s);
  rebooted.boot = BootTime{Duration(1)};
  rebooted.boot_id = next_boot;
  expect<decision::Uncertain>(decide(processing(), claim(owner_b), rebooted));
  expect<decision::Execute>(decide(processing(takeover), claim(owner_b, same, takeover), rebooted));
}

TEST(ClaimOfALeaseThatEndsTooFarAhead, CutsItInTheRecordAtTheFirstLook) {
  Record damaged = processing();
  damaged.lease->end = boot_start + 9000h;
  const Step step = decide(damaged, claim(owner_b), at(5s));
  const Record cut = expect_put(step, State::processing);
  EXPECT_EQ(cut.lease, (Lease{at(35s).boot, this_boot}));
  EXPECT_EQ(expect<decision::InProgress>(step).lease_left, Duration(30s));
  EXPECT_EQ(expect<decision::InProgress>(step).record, cut);
  expect<decision::Uncertain>(decide(cut, claim(owner_b), at(35s)));
}

TEST(ClaimOfAnUncertainKey, IsUncertainHoweverOldItIs) {
  for (const UncertainCause cause : {UncertainCause::lease_end, UncertainCause::outcome_unknown,
                                     UncertainCause::after_takeover}) {
    for (const Duration when : {Duration(1s), Duration(9000h)}) {
      const Step step = decide(uncertain(cause), claim(owner_b, same, takeover), at(when));
      EXPECT_EQ(expect<decision::Uncertain>(step).record, uncertain(cause));
      expect_unchanged(step);
    }
  }
}

TEST(ClaimOfAProcessingKey, NeverFindsItExpired) {
  Policies brief = without_lease();
  brief.retention = 1ms;
  expect<decision::InProgress>(decide(processing(brief), claim(owner_b), at(9000h)));
}

}  // namespace
}  // namespace einmal
