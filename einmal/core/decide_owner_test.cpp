#include "einmal/core/decide_fixture.hpp"

/// The owner's rows of the events table: renew, complete, fail, release, mark uncertain, abandon.
namespace einmal {
namespace {

using namespace decide_fixture;

const Policies takeover = promised(OnLeaseExpiry::takeover);

/// Everything under which owner a, generation 7, is no longer the owner.
struct Foreign {
  std::string why;
  std::optional<Record> record;
};

std::vector<Foreign> not_of_owner_a() {
  Record other_generation = processing();
  other_generation.generation = Generation{8};
  Record other_owner = processing();
  other_owner.owner = owner_b;
  Record taken_over = processing(takeover, 2);
  taken_over.generation = Generation{8};
  taken_over.owner = owner_b;
  Record settled_by_another = settled(State::completed);
  settled_by_another.generation = Generation{8};
  Record uncertain_of_another = uncertain(UncertainCause::lease_end);
  uncertain_of_another.generation = Generation{8};
  return {{"absent", std::nullopt},
          {"other generation", other_generation},
          {"other owner under the same generation", other_owner},
          {"taken over", taken_over},
          {"settled by another generation", settled_by_another},
          {"uncertain of another generation", uncertain_of_another}};
}

void expect_lost(const Step& step, const std::optional<Record>& record, const Now& now) {
  EXPECT_EQ(step.change, Step::Change::none);
  EXPECT_EQ(expect<decision::Lost>(step).record, record);
  EXPECT_EQ(expect<decision::Lost>(step).condition, condition(record, now));
}

template <class OwnerEvent>
void expect_lost_for_foreign(const OwnerEvent& event) {
  for (const Foreign& foreign : not_of_owner_a()) {
    SCOPED_TRACE(foreign.why);
    expect_lost(decide(foreign.record, event, at(1s)), foreign.record, at(1s));
  }
}

// --- renew

const event::Renew renew{Generation{7}, owner_a};

TEST(Renew, RestartsTheLeaseOfItsOwnAttempt) {
  for (const Duration when : {Duration(10s), Duration(30s), Duration(2h)}) {
    const Step step = decide(processing(takeover), renew, at(when));
    const Record record = expect_put(step, State::processing);
    EXPECT_EQ(expect<decision::Ok>(step).record, record);
    EXPECT_EQ(record.lease, (Lease{at(when + 30s).boot, this_boot}));
    EXPECT_FALSE(step.audit.has_value());
  }
}

TEST(Renew, RevivesWhatOnlySilenceMadeUncertain) {
  const Step step = decide(uncertain(UncertainCause::lease_end, 2), renew, at(60s));
  const Record record = expect_put(step, State::processing);
  EXPECT_EQ(record.cause, UncertainCause::none);
  EXPECT_EQ(record.attempts, 2u);
  EXPECT_EQ(record.lease, (Lease{at(90s).boot, this_boot}));
  expect_audit(step, AuditEvent::revived, State::uncertain, State::processing);
}

TEST(Renew, IsLostWhereSomebodySawThatTheOutcomeIsUnknown) {
  for (const UncertainCause cause :
       {UncertainCause::outcome_unknown, UncertainCause::after_takeover,
        UncertainCause::owner_stopped, UncertainCause::operator_doubt})
    expect_lost(decide(uncertain(cause), renew, at(1s)), uncertain(cause), at(1s));
}

TEST(Renew, IsLostOnceTheRecordIsSettledOrFreed) {
  for (const State state : {State::completed, State::failed, State::freed})
    expect_lost(decide(settled(state), renew, at(1s)), settled(state), at(1s));
}

TEST(Renew, IsLostForAnybodyElse) { expect_lost_for_foreign(renew); }

TEST(Renew, OfARecordWithoutLeaseGrantsNone) {
  const Step step = decide(processing(without_lease()), renew, at(1s));
  EXPECT_EQ(expect<decision::Ok>(step).record->lease, std::nullopt);
}

// --- complete, fail

TEST(Settle, PublishesTheResultAndFixesExpiryFromTheRecordsOwnRetention) {
  for (const auto& [outcome, state] : {std::pair(event::Final::completed, State::completed),
                                       std::pair(event::Final::failed, State::failed)}) {
    const Step step = decide(processing(), settle(owner_a, 7, 402, false, outcome), at(10s));
    const Record record = expect_put(step, state);
    EXPECT_EQ(expect<decision::Ok>(step).record, record);
    EXPECT_EQ(record.settled, at(10s).wall);
    EXPECT_EQ(record.expires, at(10s + 1h).wall);
    EXPECT_EQ(record.settled_by, SettledBy::owner);
    EXPECT_EQ(record.result, result_of(402));
    EXPECT_EQ(record.lease, std::nullopt);
    EXPECT_EQ(record.generation, Generation{7});
    EXPECT_EQ(record.owner, owner_a);
    EXPECT_FALSE(step.audit.has_value());
  }
}

TEST(Settle, IsInTimeAsLongAsNobodyElseActedHoweverLongTheLeaseIsOver) {
  expect_put(decide(processing(takeover), settle(owner_a, 7, 201), at(9h)), State::completed);
}

TEST(Settle, SettlesAnUncertaintyOfItsOwnGenerationWhateverTheCause) {
  for (const UncertainCause cause :
       {UncertainCause::lease_end, UncertainCause::outcome_unknown, UncertainCause::owner_stopped,
        UncertainCause::operator_doubt}) {
    const Step step = decide(uncertain(cause), settle(owner_a, 7, 201), at(9h));
    const Record record = expect_put(step, State::completed);
    EXPECT_EQ(record.cause, UncertainCause::none);
    EXPECT_EQ(record.expires, at(10h).wall);
    expect_audit(step, AuditEvent::late_completion, State::uncertain, State::completed);
    EXPECT_FALSE(step.audit->contradicts);
  }
}

TEST(Settle, SettlesAFreedRecordOfItsOwnGenerationAndAlarmsIfThereWasAnEffect) {
  const Record freed =
      settled(State::freed, promised(OnLeaseExpiry::uncertain), SettledBy::operator_);
  const Step effect = decide(freed, settle(owner_a, 7, 201), at(1s));
  EXPECT_EQ(expect_put(effect, State::completed).settled_by, SettledBy::owner);
  expect_audit(effect, AuditEvent::late_completion, State::freed, State::completed);
  EXPECT_TRUE(effect.audit->contradicts);
  const Step refusal = decide(freed, settle(owner_a, 7, 402, false, event::Final::failed), at(1s));
  expect_put(refusal, State::failed);
  EXPECT_FALSE(refusal.audit->contradicts);
}

TEST(Settle, IsLostOnceTheFreedRecordsRetentionIsOverSweptOrNot) {
  for (const auto& record : {std::optional(settled(State::freed)), std::optional<Record>()}) {
    const Step step = decide(record, settle(owner_a, 7, 201), at(1h));
    expect_lost(step, std::nullopt, at(1h));
    expect_audit(step, AuditEvent::late_result, std::nullopt, std::nullopt);
    EXPECT_TRUE(step.audit->contradicts);
  }
}

TEST(Settle, AgainByItsOwnerIsOkAndChangesNothing) {
  for (const State state : {State::completed, State::failed}) {
    const Step step = decide(settled(state), settle(owner_a, 7, 500), at(1s));
    EXPECT_EQ(expect<decision::Ok>(step).record, settled(state));
    expect_unchanged(step);
  }
  const Step tombstone =
      decide(settled(State::completed, refusing()), settle(owner_a, 7, 201), at(2h));
  expect<decision::Ok>(tombstone);
  expect_unchanged(tombstone);
}

TEST(Settle, IsLostWhereAnOperatorOrReconcilerSettledAndIsKeptAsALateResult) {
  for (const SettledBy by : {SettledBy::operator_, SettledBy::reconciler}) {
    const Record record = settled(State::completed, promised(OnLeaseExpiry::uncertain), by);
    const Step step = decide(record, settle(owner_a, 7, 201), at(1s));
    expect_lost(step, record, at(1s));
    expect_audit(step, AuditEvent::late_result, State::completed, State::completed);
    EXPECT_EQ(step.audit->generation, Generation{7});
    EXPECT_EQ(step.audit->late_outcome, event::Final::completed);
    EXPECT_EQ(step.audit->late_result, result_of(201));
    EXPECT_FALSE(step.audit->contradicts);
  }
}

TEST(Settle, ThatComesTooLateContradictsAnotherOutcomeOrAnotherResource) {
  Record record =
      settled(State::completed, promised(OnLeaseExpiry::uncertain), SettledBy::operator_);
  record.result->resource_id = "order-1";
  event::Settle late = settle(owner_a, 7, 201);
  late.result.resource_id = "order-1";
  EXPECT_FALSE(decide(record, late, at(1s)).audit->contradicts);
  late.result.resource_id = "order-2";
  EXPECT_TRUE(decide(record, late, at(1s)).audit->contradicts);
  EXPECT_TRUE(expect<decision::Lost>(decide(record, late, at(1s))).contradicts);
  late = settle(owner_a, 7, 402, false, event::Final::failed);
  EXPECT_TRUE(decide(record, late, at(1s)).audit->contradicts);
  EXPECT_TRUE(
      decide(settled(State::failed, promised(OnLeaseExpiry::uncertain), SettledBy::reconciler),
             settle(owner_a, 7, 201), at(1s))
          .audit->contradicts);
}

TEST(Settle, ThatComesTooLateContradictsAKeyThatWasGivenAway) {
  Record claimed_anew = processing();
  claimed_anew.generation = Generation{8};
  EXPECT_TRUE(decide(claimed_anew, settle(owner_a, 7, 201), at(1s)).audit->contradicts);
  EXPECT_TRUE(decide(std::nullopt, settle(owner_a, 7, 201), at(1s)).audit->contradicts);
  EXPECT_FALSE(decide(std::nullopt, settle(owner_a, 7, 402, false, event::Final::failed), at(1s))
                   .audit->contradicts);
}

TEST(Settle, ThatComesAfterATakeoverContradictsNothingThatIsNotSettledYet) {
  Record taken_over = processing(takeover, 2);
  taken_over.generation = Generation{8};
  EXPECT_FALSE(decide(taken_over, settle(owner_a, 7, 201), at(1s)).audit->contradicts);
}

TEST(Settle, IsLostForAnybodyElseAndKeptAsALateResult) {
  expect_lost_for_foreign(settle(owner_a, 7, 201));
  for (const Foreign& foreign : not_of_owner_a()) {
    const Step step = decide(foreign.record, settle(owner_a, 7, 201), at(1s));
    const auto state = foreign.record ? std::optional(foreign.record->state) : std::nullopt;
    expect_audit(step, AuditEvent::late_result, state, state);
  }
}

TEST(Settle, AfterATakeoverIsUncertainUnlessTheStatusProvesSuccess) {
  for (const int status : {200, 201, 204, 299, 303})
    expect_put(decide(processing(takeover, 2), settle(owner_a, 7, status), at(1s)),
               State::completed);
  for (const int status : {199, 300, 302, 304, 400, 402, 404, 409, 500}) {
    const Step step = decide(processing(takeover, 2), settle(owner_a, 7, status), at(1s));
    const Record record = expect_put(step, State::uncertain);
    EXPECT_EQ(expect<decision::BecameUncertain>(step).record, record);
    EXPECT_EQ(record.cause, UncertainCause::after_takeover);
    EXPECT_EQ(record.result, result_of(status));
    expect_audit(step, AuditEvent::became_uncertain, State::processing, State::uncertain);
  }
}

TEST(Settle, AfterATakeoverIsBelievedWhereTheUpstreamSaidWhatItMeans) {
  const auto failed = settle(owner_a, 7, 402, true, event::Final::failed);
  expect_put(decide(processing(takeover, 2), failed, at(1s)), State::failed);
  expect_put(decide(uncertain(UncertainCause::lease_end, 2), failed, at(1s)), State::failed);
}

TEST(Settle, AfterATakeoverDoesNotSettleAnUncertaintyByAStatusThatProvesNothing) {
  const auto refused = settle(owner_a, 7, 409, false, event::Final::failed);
  const Step step = decide(uncertain(UncertainCause::lease_end, 2), refused, at(1s));
  EXPECT_EQ(expect<decision::BecameUncertain>(step).record.result, result_of(409));
  EXPECT_FALSE(step.audit.has_value());
  const Step again = decide(step.record, refused, at(2s));
  expect<decision::BecameUncertain>(again);
  expect_unchanged(again);
}

TEST(Settle, AfterATakeoverDoesNotUndoAFreedRecordByAStatusThatProvesNothing) {
  Record freed = settled(State::freed, takeover, SettledBy::operator_);
  freed.attempts = 2;
  const Step step = decide(freed, settle(owner_a, 7, 409, false, event::Final::failed), at(1s));
  expect_lost(step, freed, at(1s));
  expect_audit(step, AuditEvent::late_result, State::freed, State::freed);
  EXPECT_FALSE(step.audit->contradicts);
  expect_put(decide(freed, settle(owner_a, 7, 201), at(1s)), State::completed);
}

// --- release

const event::Release release{Generation{7}, owner_a};

TEST(Release, RemovesTheRecordOfAFirstAttempt) {
  const Step step = decide(processing(), release, at(1s));
  EXPECT_EQ(expect<decision::Ok>(step).record, std::nullopt);
  expect_erased(step);
  EXPECT_FALSE(step.audit.has_value());
}

TEST(Release, RemovesAnUncertaintyOfItsOwnGeneration) {
  for (const UncertainCause cause : {UncertainCause::lease_end, UncertainCause::outcome_unknown}) {
    const Step step = decide(uncertain(cause), release, at(1s));
    expect<decision::Ok>(step);
    expect_erased(step);
    expect_audit(step, AuditEvent::late_release, State::uncertain, std::nullopt);
  }
}

TEST(Release, AfterATakeoverIsUncertain) {
  const Step step = decide(processing(takeover, 2), release, at(1s));
  const Record record = expect_put(step, State::uncertain);
  EXPECT_EQ(expect<decision::BecameUncertain>(step).record, record);
  EXPECT_EQ(record.cause, UncertainCause::after_takeover);
  expect_audit(step, AuditEvent::became_uncertain, State::processing, State::uncertain);
  const Step again = decide(step.record, release, at(2s));
  EXPECT_EQ(expect<decision::BecameUncertain>(again).record, record);
  expect_unchanged(again);
}

TEST(Release, IsLostOnceTheRecordIsSettledOrFreed) {
  for (const State state : {State::completed, State::failed, State::freed})
    expect_lost(decide(settled(state), release, at(1s)), settled(state), at(1s));
}

TEST(Release, IsLostForAnybodyElse) { expect_lost_for_foreign(release); }

// --- mark uncertain

const event::MarkUncertain mark{Generation{7}, owner_a, UncertainCause::outcome_unknown,
                                result_of(502, "")};

TEST(MarkUncertain, KeepsTheCauseAndWhatWasSeen) {
  for (const Policies& policies : {promised(OnLeaseExpiry::uncertain), takeover}) {
    const Step step = decide(processing(policies), mark, at(1s));
    const Record record = expect_put(step, State::uncertain);
    EXPECT_EQ(expect<decision::Ok>(step).record, record);
    EXPECT_EQ(record.cause, UncertainCause::outcome_unknown);
    EXPECT_EQ(record.result, result_of(502, ""));
    EXPECT_EQ(record.expires, std::nullopt);
    expect_audit(step, AuditEvent::became_uncertain, State::processing, State::uncertain);
  }
}

TEST(MarkUncertain, OfWhatSilenceMadeUncertainLetsTheOwnersWordStand) {
  const Step step = decide(uncertain(UncertainCause::lease_end), mark, at(1s));
  EXPECT_EQ(expect_put(step, State::uncertain).cause, UncertainCause::outcome_unknown);
  EXPECT_FALSE(step.audit.has_value());
  expect_lost(decide(step.record, renew, at(2s)), step.record, at(2s));
}

TEST(MarkUncertain, AgainIsOkAndChangesNothing) {
  const Record record = uncertain(UncertainCause::after_takeover, 2);
  const Step step = decide(record, mark, at(1s));
  EXPECT_EQ(expect<decision::Ok>(step).record, record);
  expect_unchanged(step);
}

TEST(MarkUncertain, IsLostOnceTheRecordIsSettledOrFreed) {
  for (const State state : {State::completed, State::failed, State::freed})
    expect_lost(decide(settled(state), mark, at(1s)), settled(state), at(1s));
}

TEST(MarkUncertain, IsLostForAnybodyElse) { expect_lost_for_foreign(mark); }

// --- abandon

const event::Abandon abandon{Generation{7}, owner_a};

TEST(Abandon, EndsTheLeaseUnderTakeover) {
  const Step step = decide(processing(takeover), abandon, at(1s));
  EXPECT_EQ(expect_put(step, State::processing).lease, (Lease{at(1s).boot, this_boot}));
  const Step next = decide(step.record, claim(owner_b, same, takeover), at(1s));
  EXPECT_TRUE(expect<decision::Execute>(next).takeover);
}

TEST(Abandon, IsUncertainOtherwise) {
  Policies takeover_without_lease = takeover;
  takeover_without_lease.lease.reset();
  for (const Policies& policies :
       {promised(OnLeaseExpiry::uncertain), without_lease(), takeover_without_lease}) {
    const Step step = decide(processing(policies), abandon, at(1s));
    EXPECT_EQ(expect_put(step, State::uncertain).cause, UncertainCause::owner_stopped);
    expect_audit(step, AuditEvent::became_uncertain, State::processing, State::uncertain);
  }
}

TEST(Abandon, OfWhatIsUncertainAlreadyIsOk) {
  const Step step = decide(uncertain(UncertainCause::lease_end), abandon, at(1s));
  expect<decision::Ok>(step);
  expect_unchanged(step);
}

TEST(Abandon, IsLostForAnybodyElse) { expect_lost_for_foreign(abandon); }

TEST(Abandon, IsLostOnceTheRecordIsSettledOrFreed) {
  for (const State state : {State::completed, State::failed, State::freed})
    expect_lost(decide(settled(state), abandon, at(1s)), settled(state), at(1s));
}

}  // namespace
}  // namespace einmal
