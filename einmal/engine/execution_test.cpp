#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

using ExecutionTest = EngineTest;

Asking takeover(Duration lease = 30s) {
  Asking asking;
  asking.on_lease_expiry = OnLeaseExpiry::takeover;
  asking.lease = lease;
  return asking;
}

// --- heartbeat

TEST_F(ExecutionTest, HeartbeatRenewsAtAThirdOfTheLease) {
  ask("K");
  scheduler.advance(10s - 1us);
  EXPECT_EQ(faults().count(is_event<event::Renew>), 0u);
  scheduler.advance(1us);
  EXPECT_EQ(faults().count(is_event<event::Renew>), 1u);
  scheduler.advance(20min);
  EXPECT_EQ(condition("K"), Condition::processing);
  EXPECT_EQ(what(ask("K")), "in_progress");
  EXPECT_EQ(observer().count("renewed confirmed"), 121);
}

TEST_F(ExecutionTest, WithoutALeaseThereIsNoHeartbeatAndNoEnd) {
  Asking asking;
  asking.lease.reset();
  Asked& owner = ask("K", asking);
  scheduler.advance(24h * 30);
  EXPECT_EQ(faults().count(is_event<event::Renew>), 0u);
  EXPECT_EQ(what(ask("K", asking)), "in_progress");
  EXPECT_TRUE(owner.execution().may_send());
}

TEST_F(ExecutionTest, HeartbeatEndsWithTheExecution) {
  Asked& owner = ask("K");
  owner.settle();
  scheduler.advance(60s);
  EXPECT_EQ(faults().count(is_event<event::Renew>), 0u);
  EXPECT_EQ(scheduler.timers(), 0u);
}

TEST_F(ExecutionTest, AFailedHeartbeatIsRetriedAndStopsNobody) {
  Asked& owner = ask("K");
  bool stopped = false;
  owner.execution().on_lost([&] { stopped = true; });
  faults().inject(Fault::refused, is_event<event::Renew>, FaultStore::forever);
  scheduler.advance(20s);
  EXPECT_GE(observer().count("renewed failed"), 3);
  EXPECT_FALSE(stopped);
  faults().heal();
  scheduler.advance(8s);
  EXPECT_GE(observer().count("renewed confirmed"), 1);
  EXPECT_EQ(what(ask("K")), "in_progress");
  EXPECT_FALSE(stopped);
}

TEST_F(ExecutionTest, AnOwnerThatBecameUncertainBySilenceComesBackWithItsNextHeartbeat) {
  Asked& owner = ask("K");
  faults().inject(Fault::stalled, is_event<event::Renew>);
  scheduler.advance(31s);
  EXPECT_EQ(what(ask(start(), "K")), "uncertain");
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(condition("K"), Condition::processing);
  owner.settle();
  scheduler.run_ready();
  EXPECT_EQ(how(owner), "recorded");
}

TEST_F(ExecutionTest, OnlyLostStopsTheHandlerAndOnce) {
  Asked& owner = ask("K", takeover(3s));
  int stopped = 0;
  owner.execution().on_lost([&] { ++stopped; });
  faults().inject(Fault::stalled, is_event<event::Renew>);
  scheduler.advance(3s);
  Asked& successor = ask(start(), "K", takeover(3s));
  ASSERT_EQ(what(successor), "execute");
  EXPECT_EQ(successor.execution().record().attempts, 2u);
  EXPECT_EQ(stopped, 0);
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(stopped, 1);
  scheduler.advance(10s);
  EXPECT_EQ(stopped, 1);
  EXPECT_FALSE(owner.execution().may_send());
  EXPECT_EQ(observer().count("ownership_lost"), 1);
}

TEST_F(ExecutionTest, AnOwnerThatKnowsItIsLostSendsNothingHoweverMuchTimeItsLeaseHadLeft) {
  Asked& owner = ask("K");
  operate("K", event::Resolve{owner.execution().record().generation,
                              event::Resolution::freed,
                              {},
                              SettledBy::operator_,
                              true});
  EXPECT_TRUE(owner.execution().may_send()) << "it cannot know yet";
  scheduler.advance(10s);
  EXPECT_EQ(observer().count("ownership_lost"), 1);
  EXPECT_FALSE(owner.execution().may_send());
  std::optional<bool> confirmed;
  owner.execution().reconfirm([&](bool ok) { confirmed = ok; });
  scheduler.run_ready();
  EXPECT_EQ(confirmed, false);
}

TEST_F(ExecutionTest, AHandlerThatAsksTooLateIsToldAllTheSame) {
  Asked& owner = ask("K", takeover(3s));
  faults().inject(Fault::stalled, is_event<event::Renew>);
  scheduler.advance(3s);
  Asked& successor = ask(start(), "K", takeover(3s));
  faults().resume();
  scheduler.run_ready();
  bool stopped = false;
  owner.execution().on_lost([&] { stopped = true; });
  EXPECT_FALSE(stopped);
  scheduler.run_ready();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(what(successor), "execute");
}

// --- the late forward

TEST_F(ExecutionTest, MaySendOnlyWhileLessThanLeaseMinusMarginHasPassedSinceTheClaimWasSent) {
  faults().inject(Fault::stalled_after, is_event<event::Claim>);
  faults().inject(Fault::refused, is_event<event::Renew>, FaultStore::forever);
  Asked& owner = ask("K");
  scheduler.advance(4s);
  faults().resume();
  scheduler.run_ready();
  // Sent 4 s ago: the answer's arrival does not count. 30 s less a margin of 5 s.
  scheduler.advance(21s - 1us);
  EXPECT_TRUE(owner.execution().may_send());
  scheduler.advance(1us);
  EXPECT_FALSE(owner.execution().may_send());
}

TEST_F(ExecutionTest, TheMarginIsAQuarterOfAShortLease) {
  Asking asking;
  asking.lease = 4s;
  faults().inject(Fault::refused, is_event<event::Renew>, FaultStore::forever);
  Asked& owner = ask("K", asking);
  scheduler.advance(3s - 1us);
  EXPECT_TRUE(owner.execution().may_send());
  scheduler.advance(1us);
  EXPECT_FALSE(owner.execution().may_send());
}

TEST_F(ExecutionTest, TheWallClockHasNoPartInTheLateForwardRule) {
  Asked& owner = ask("K");
  clock.jump_wall(24h);
  EXPECT_TRUE(owner.execution().may_send());
  clock.jump_wall(-48h);
  EXPECT_TRUE(owner.execution().may_send());
}

TEST_F(ExecutionTest, ReconfirmRenewsAndAllowsSendingOnlyAfterTheStoreSaidOk) {
  Asked& owner = ask("K");
  clock.advance(28s);  // the process was stopped: no timer ran
  EXPECT_FALSE(owner.execution().may_send());
  std::optional<bool> confirmed;
  owner.execution().reconfirm([&](bool ok) { confirmed = ok; });
  EXPECT_FALSE(confirmed.has_value());
  EXPECT_FALSE(owner.execution().may_send());
  scheduler.run_ready();
  EXPECT_EQ(confirmed, true);
  EXPECT_TRUE(owner.execution().may_send());
}

TEST_F(ExecutionTest, ReconfirmFailsWhenTheKeyWasTakenOverMeanwhile) {
  Asked& owner = ask("K", takeover());
  clock.advance(31s);
  Asked& successor = ask(start(), "K", takeover());
  ASSERT_EQ(what(successor), "execute");
  std::optional<bool> confirmed;
  owner.execution().reconfirm([&](bool ok) { confirmed = ok; });
  scheduler.run_ready();
  EXPECT_EQ(confirmed, false);
  EXPECT_FALSE(owner.execution().may_send());
}

TEST_F(ExecutionTest, ReconfirmGivesUpAtTheStoreDeadline) {
  Asked& owner = ask("K");
  clock.advance(28s);
  faults().inject(Fault::stalled, is_event<event::Renew>);
  std::optional<bool> confirmed;
  owner.execution().reconfirm([&](bool ok) { confirmed = ok; });
  scheduler.advance(5s - 1us);
  EXPECT_FALSE(confirmed.has_value());
  scheduler.advance(1us);
  EXPECT_EQ(confirmed, false);
  faults().resume();
  scheduler.run_ready();
}

TEST_F(ExecutionTest, AConfirmationThatTookLongerThanTheLeaseConfirmsNothing) {
  Asking asking;
  asking.lease = 2s;
  Asked& owner = ask("K", asking);
  faults().inject(Fault::stalled_after, is_event<event::Renew>, 2);
  std::optional<bool> confirmed;
  clock.advance(1900ms);
  owner.execution().reconfirm([&](bool ok) { confirmed = ok; });
  scheduler.advance(3s);
  faults().resume();
  scheduler.run_ready();
  // The first confirmation was sent 3 s ago; only the second one, sent now, counts.
  EXPECT_FALSE(confirmed.has_value());
  EXPECT_FALSE(owner.execution().may_send());
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(confirmed, true);
}

// --- the end

TEST_F(ExecutionTest, ASettlementIsAnsweredOnlyWhenDurable) {
  Asked& owner = ask("K");
  faults().inject(Fault::stalled, is_event<event::Settle>);
  owner.settle();
  scheduler.advance(4s);
  EXPECT_EQ(how(owner), "nothing");
  EXPECT_EQ(condition("K"), Condition::processing);
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(how(owner), "recorded");
  EXPECT_EQ(condition("K"), Condition::completed);
}

TEST_F(ExecutionTest, AFailureIsFinalAndReplayed) {
  Asked& owner = ask("K");
  owner.settle(402, "declined");
  scheduler.run_ready();
  EXPECT_EQ(condition("K"), Condition::failed);
  EXPECT_EQ(ask("K").as<begun::Replay>().record->result->status, 402);
}

TEST_F(ExecutionTest, ASettlementInDoubtIsRepeatedUntilTheStoreConfirms) {
  for (const Fault fault : {Fault::doubt_done, Fault::doubt_undone, Fault::refused}) {
    const std::string key = "K" + std::to_string(static_cast<int>(fault));
    Asked& owner = ask(key);
    faults().inject(fault, is_event<event::Settle>, 3);
    owner.settle();
    scheduler.advance(2s);
    EXPECT_EQ(how(owner), "recorded");
    EXPECT_EQ(condition(key), Condition::completed);
    EXPECT_EQ(owner.finishes, 1);
  }
}

TEST_F(ExecutionTest, AReleaseInDoubtThatHappenedIsNoLoss) {
  Asked& owner = ask("K");
  faults().inject(Fault::doubt_done, is_event<event::Release>);
  owner.release();
  scheduler.advance(1s);
  EXPECT_EQ(how(owner), "recorded");
  EXPECT_EQ(condition("K"), Condition::absent);
  EXPECT_EQ(observer().count("ownership_lost"), 0);
}

TEST_F(ExecutionTest, AReleaseInDoubtAfterWhichAnotherClaimedTheKeyIsNoLossEither) {
  Asked& owner = ask("K");
  faults().inject(Fault::doubt_done, is_event<event::Release>);
  owner.release();
  Asked& next = ask(start(), "K");
  ASSERT_EQ(what(next), "execute");
  scheduler.advance(1s);
  EXPECT_EQ(how(owner), "recorded");
  EXPECT_EQ(stored("K")->record.owner, next.execution().record().owner);
}

TEST_F(ExecutionTest, StoreDownAfterTheAnswerIsUnrecordedAfterStoreGraceAndWrittenLater) {
  Asked& owner = ask("K");
  faults().inject(Fault::refused, is_event<event::Settle>, FaultStore::forever);
  owner.settle();
  scheduler.advance(5s - 1us);
  EXPECT_EQ(how(owner), "nothing");
  scheduler.advance(1us);
  ASSERT_EQ(how(owner), "unrecorded");
  EXPECT_TRUE(std::get<finished::Unrecorded>(*owner.finished).may_answer);
  EXPECT_EQ(engine().load().executions, 0u);
  EXPECT_EQ(engine().load().background, 1u);
  owner.give_up_execution();
  EXPECT_EQ(condition("K"), Condition::processing);
  EXPECT_EQ(what(ask("K")), "in_progress") << "nothing runs again";

  faults().heal();
  scheduler.advance(2s);
  EXPECT_EQ(condition("K"), Condition::completed);
  EXPECT_EQ(engine().load().background, 0u);
  EXPECT_EQ(owner.finishes, 1);
  EXPECT_EQ(observer().count("finished complete unrecorded"), 1);
  EXPECT_EQ(observer().count("finished complete recorded background"), 1);
}

TEST_F(ExecutionTest, AnUnrecordedResultThatTheStoreStillHoldsIsWrittenWhenItAnswers) {
  Asked& owner = ask("K");
  faults().inject(Fault::stalled, is_event<event::Settle>);
  owner.settle();
  scheduler.advance(5s);
  EXPECT_EQ(how(owner), "unrecorded");
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(condition("K"), Condition::completed);
  EXPECT_EQ(engine().load().background, 0u);
}

TEST_F(ExecutionTest, AnUnrecordedResultMayNotBeAnsweredWhereASecondForwardCanExist) {
  Asked& owner = ask("K", takeover());
  faults().inject(Fault::refused, is_event<event::Settle>, FaultStore::forever);
  owner.settle();
  scheduler.advance(5s);
  ASSERT_EQ(how(owner), "unrecorded");
  EXPECT_FALSE(std::get<finished::Unrecorded>(*owner.finished).may_answer);
}

TEST_F(ExecutionTest, AnUnrecordedResultThatComesAfterAllSettlesWhatSilenceMadeUncertain) {
  Asked& owner = ask("K");
  faults().inject(Fault::refused, is_event<event::Settle>, FaultStore::forever);
  owner.settle(201, "order 7");
  scheduler.advance(31s);
  EXPECT_EQ(what(ask(start(), "K")), "uncertain");
  faults().heal();
  scheduler.advance(10s);
  EXPECT_EQ(ask("K").as<begun::Replay>().record->result->body, "order 7");
}

TEST_F(ExecutionTest, BackgroundWritesAreBounded) {
  limits.background_writes = 1;
  Asked& first = ask("K1");
  Asked& second = ask("K2");
  faults().inject(Fault::refused, is_event<event::Settle>, FaultStore::forever);
  first.settle();
  second.settle();
  scheduler.advance(5s);
  EXPECT_EQ(how(first), "unrecorded");
  EXPECT_EQ(how(second), "unrecorded");
  EXPECT_EQ(engine().load().background, 1u);
  EXPECT_EQ(observer().count("alarm background_full"), 1);
  EXPECT_EQ(observer().count("finished complete given_up background"), 1);
}

TEST_F(ExecutionTest, AResultThatNoStoreTakesIsUnrecordedAtOnceAndNeverRunAgain) {
  Asked& owner = ask("K", takeover(3s));
  owner.settle(42, "no status of HTTP");
  scheduler.run_ready();
  ASSERT_EQ(how(owner), "unrecorded");
  EXPECT_EQ(condition("K"), Condition::uncertain);
  scheduler.advance(60s);
  EXPECT_EQ(what(ask("K", takeover(3s))), "uncertain");
  EXPECT_EQ(owner.finishes, 1);
}

TEST_F(ExecutionTest, DestroyedUnfinishedItIsUncertain) {
  Asked& owner = ask("K");
  owner.give_up_execution();
  scheduler.run_ready();
  EXPECT_EQ(condition("K"), Condition::uncertain);
  EXPECT_EQ(stored("K")->record.cause, UncertainCause::outcome_unknown);
  EXPECT_EQ(engine().load().executions, 0u);
}

TEST_F(ExecutionTest, DestroyedWhileItSettlesTheWriteGoesOnAndNobodyIsCalled) {
  Asked& owner = ask("K");
  faults().inject(Fault::stalled, is_event<event::Settle>);
  owner.settle();
  owner.give_up_execution();
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(owner.finishes, 0);
  EXPECT_EQ(condition("K"), Condition::completed);
}

TEST_F(ExecutionTest, AfterMarkUncertainALateAnswerStillSettles) {
  Asked& owner = ask("K");
  owner.mark_uncertain();
  scheduler.run_ready();
  ASSERT_EQ(how(owner), "recorded");
  EXPECT_EQ(what(ask("K")), "uncertain");
  scheduler.advance(3min);
  owner.settle(201, "late");
  scheduler.run_ready();
  EXPECT_EQ(how(owner), "recorded");
  EXPECT_EQ(ask("K").as<begun::Replay>().record->result->body, "late");
  EXPECT_EQ(observer().count("finished complete recorded late"), 1);
}

TEST_F(ExecutionTest, ALateAnswerFollowsAMarkThatIsStillBeingWritten) {
  Asked& owner = ask("K");
  faults().inject(Fault::refused, is_event<event::MarkUncertain>, FaultStore::forever);
  owner.mark_uncertain();
  scheduler.advance(6s);
  ASSERT_EQ(how(owner), "unrecorded");
  owner.settle(201, "late");
  faults().heal();
  scheduler.advance(5s);
  EXPECT_EQ(how(owner), "recorded");
  EXPECT_EQ(ask("K").as<begun::Replay>().record->result->body, "late");
}

TEST_F(ExecutionTest, ALateAnswerAfterAMarkThatWasLostIsKeptAsALateResult) {
  Asked& owner = ask("K");
  const Generation generation = owner.execution().record().generation;
  operate("K",
          event::Resolve{generation, event::Resolution::freed, {}, SettledBy::operator_, true});
  owner.mark_uncertain();
  scheduler.run_ready();
  ASSERT_EQ(how(owner), "lost");
  ASSERT_EQ(what(ask(start(), "K")), "execute");
  owner.settle(201, "late");
  scheduler.run_ready();
  EXPECT_EQ(how(owner), "lost");
  EXPECT_EQ(observer().count("late_result contradicts"), 1);
}

TEST_F(ExecutionTest, AfterMarkUncertainALateReleaseFreesTheKey) {
  Asked& owner = ask("K");
  owner.mark_uncertain();
  scheduler.run_ready();
  owner.release();
  scheduler.run_ready();
  EXPECT_EQ(how(owner), "recorded");
  EXPECT_EQ(what(ask("K")), "execute");
}

TEST_F(ExecutionTest, AReleaseAfterATakeoverIsUncertain) {
  Process& vanished = start();
  ask(vanished, "K", takeover(3s));
  vanished.crash();
  scheduler.advance(3s);
  Asked& second = ask(start(), "K", takeover(3s));
  ASSERT_EQ(what(second), "execute");
  second.release();
  scheduler.run_ready();
  EXPECT_EQ(how(second), "became_uncertain");
  EXPECT_EQ(condition("K"), Condition::uncertain);
}

// --- lost

TEST_F(ExecutionTest, AStaleOwnersResultIsLostAndItsCallerIsAnsweredFromTheRecord) {
  Asked& stale = ask("K", takeover(3s));
  clock.advance(3s);
  Process& other = start();
  Asked& successor = ask(other, "K", takeover(3s));
  ASSERT_EQ(what(successor), "execute");

  stale.settle(201, "stale");
  scheduler.run_ready();
  ASSERT_EQ(how(stale), "lost");
  const auto& lost = std::get<finished::Lost>(*stale.finished);
  EXPECT_EQ(as_duplicate(lost, stale.execution().record()).index(), 3u) << "in progress";
  EXPECT_EQ(observer().count("late_result"), 1);

  successor.settle(201, "new");
  scheduler.run_ready();
  EXPECT_EQ(how(successor), "recorded");
  EXPECT_EQ(ask("K", takeover(3s)).as<begun::Replay>().record->result->body, "new");
}

TEST_F(ExecutionTest, ALateResultThatContradictsWhatWasSettledRaisesAnAlarm) {
  Asked& stale = ask("K", takeover(3s));
  clock.advance(3s);
  Asked& successor = ask(start(), "K", takeover(3s));
  successor.settle(402, "declined", true);
  scheduler.run_ready();
  stale.settle(201, "paid");
  scheduler.run_ready();
  ASSERT_EQ(how(stale), "lost");
  const auto& lost = std::get<finished::Lost>(*stale.finished);
  const Begun answer = as_duplicate(lost, stale.execution().record());
  EXPECT_EQ(std::get<begun::Replay>(answer).record->result->status, 402);
  EXPECT_EQ(observer().count("late_result contradicts"), 1);
  EXPECT_EQ(observer().count("alarm late_contradiction"), 1);
}

TEST_F(ExecutionTest, LostToARecordThatIsGoneHasNothingToAnswerFrom) {
  Asked& owner = ask("K");
  const Generation generation = owner.execution().record().generation;
  StoredResult result;
  result.status = 201;
  operate("K", event::Resolve{generation, event::Resolution::completed, result,
                              SettledBy::operator_, true});
  operate("K", event::Forget{generation});
  owner.settle();
  scheduler.run_ready();
  ASSERT_EQ(how(owner), "lost");
  EXPECT_EQ(std::get<finished::Lost>(*owner.finished).record, nullptr);
}

TEST_F(ExecutionTest, LostToAnotherRequestIsAMismatch) {
  Asked& owner = ask("K");
  const Generation generation = owner.execution().record().generation;
  operate("K",
          event::Resolve{generation, event::Resolution::freed, {}, SettledBy::operator_, true});
  Asking other;
  other.body = "other";
  ASSERT_EQ(what(ask(start(), "K", other)), "execute");
  owner.settle();
  scheduler.run_ready();
  ASSERT_EQ(how(owner), "lost");
  const auto& lost = std::get<finished::Lost>(*owner.finished);
  EXPECT_TRUE(
      std::holds_alternative<begun::Mismatch>(as_duplicate(lost, owner.execution().record())));
}

TEST_F(ExecutionTest, LostToTheSameRequestUnderAnotherProfileIsNoMismatch) {
  Asked& owner = ask("K");
  const Generation generation = owner.execution().record().generation;
  operate("K",
          event::Resolve{generation, event::Resolution::freed, {}, SettledBy::operator_, true});
  Asking elsewhere;
  elsewhere.profile = "v2";
  ASSERT_EQ(what(ask(start(), "K", elsewhere)), "execute");
  owner.settle();
  scheduler.run_ready();
  const auto& lost = std::get<finished::Lost>(*owner.finished);
  EXPECT_TRUE(
      std::holds_alternative<begun::InProgress>(as_duplicate(lost, owner.execution().record())));
}

TEST_F(ExecutionTest, WhatTheStoreSaysOfTheLeaseWhileTheResultIsOnItsWayIsIgnored) {
  Asked& owner = ask("K");
  bool stopped = false;
  owner.execution().on_lost([&] { stopped = true; });
  faults().inject(Fault::stalled, is_event<event::Renew>);
  scheduler.advance(10s);
  owner.settle();
  scheduler.run_ready();
  faults().resume();  // the renewal reaches a completed record: lost, and no news
  scheduler.run_ready();
  EXPECT_FALSE(stopped);
  EXPECT_EQ(how(owner), "recorded");
  EXPECT_EQ(observer().count("ownership_lost"), 0);
}

TEST_F(ExecutionTest, OutlivesItsEngineHarmlessly) {
  Asked& owner = ask("K");
  process().crash();
  EXPECT_EQ(owner.execution().scope().key(), "K");
  EXPECT_EQ(owner.execution().record().attempts, 1u);
  EXPECT_FALSE(owner.execution().may_send());
  owner.settle();
  scheduler.run_ready();
  EXPECT_EQ(owner.finishes, 0);
  EXPECT_EQ(condition("K"), Condition::processing);
}

TEST_F(ExecutionTest, AnEngineMayEndWhileTheStoreHoldsEverything) {
  faults().inject(Fault::stalled, is_event<event::Renew>);
  Asked& renewing = ask("K1");
  Asked& settling = ask("K2");
  scheduler.advance(10s);
  faults().inject(Fault::stalled_after, testing::is_any, FaultStore::forever);
  settling.settle();
  Asked& claiming = ask("K3");
  engine().ask(request::Stats{}, [](Result<Answer>) { FAIL(); });
  scheduler.run_ready();
  process().crash();
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(settling.finishes + claiming.answers, 0);
  EXPECT_EQ(renewing.answers, 1);
}

}  // namespace
}  // namespace einmal
