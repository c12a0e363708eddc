#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

using ClaimInDoubt = EngineTest;

TEST_F(ClaimInDoubt, OnceIsRepeatedWithItsOwnTokenAndExecutesOnce) {
  for (const Fault fault : {Fault::doubt_done, Fault::doubt_undone}) {
    const std::string key = fault == Fault::doubt_done ? "done" : "undone";
    faults().inject(fault, is_event<event::Claim>);
    Asked& asked = ask(key);
    EXPECT_EQ(what(asked), "nothing");
    scheduler.advance(1s);
    ASSERT_EQ(what(asked), "execute") << key;
    EXPECT_EQ(asked.execution().record().attempts, 1u);
    EXPECT_EQ(stored(key)->record.owner, asked.execution().record().owner);
    EXPECT_EQ(engine().load().background, 0u);
  }
}

TEST_F(ClaimInDoubt, WhoseRecordWasFreedMeanwhileIsAnotherOperationWhenItIsRepeated) {
  faults().inject(Fault::doubt_done, is_event<event::Claim>);
  Asked& asked = ask("K");
  const Record first = stored("K")->record;
  operate("K", event::Resolve{
                   first.generation, event::Resolution::freed, {}, SettledBy::operator_, true});
  scheduler.advance(1s);
  ASSERT_EQ(what(asked), "execute");
  EXPECT_GT(number(asked.execution().record().generation), number(first.generation));
  EXPECT_NE(asked.execution().record().operation_id, first.operation_id);
}

TEST_F(ClaimInDoubt, IsRepeatedWithGrowingPauses) {
  faults().inject(Fault::doubt_undone, is_event<event::Claim>, FaultStore::forever);
  ask("K");
  scheduler.advance(5s);
  const std::size_t claims = faults().count(is_event<event::Claim>);
  EXPECT_GE(claims, 6u);
  EXPECT_LE(claims, 14u);
}

TEST_F(ClaimInDoubt, ForGoodIsUnavailableAtTheDeadlineAndGoesBackWhenTheStoreAnswers) {
  faults().inject(Fault::doubt_done, is_event<event::Claim>, FaultStore::forever);
  Asked& asked = ask("K");
  scheduler.advance(5s - 1us);
  EXPECT_EQ(what(asked), "nothing");
  scheduler.advance(1us);
  ASSERT_EQ(what(asked), "unavailable");
  EXPECT_EQ(asked.as<begun::Unavailable>().error.code, ErrorCode::in_doubt);
  EXPECT_EQ(condition("K"), Condition::processing);
  EXPECT_EQ(engine().load().background, 1u);

  faults().heal();
  scheduler.advance(2s);
  EXPECT_EQ(condition("K"), Condition::absent);
  EXPECT_EQ(engine().load().background, 0u);
  EXPECT_EQ(asked.answers, 1);
  EXPECT_EQ(what(ask("K")), "execute");
}

TEST_F(ClaimInDoubt, WhoseReleaseIsInDoubtAsWellStillGoesBack) {
  faults().inject(Fault::doubt_done, is_event<event::Claim>, FaultStore::forever);
  ask("K");
  scheduler.advance(5s);
  faults().heal();
  faults().inject(Fault::doubt_done, is_event<event::Release>);
  scheduler.advance(5s);
  EXPECT_EQ(condition("K"), Condition::absent);
  EXPECT_EQ(engine().load().background, 0u);
}

TEST_F(ClaimInDoubt, DoesNotReleaseWhatSomebodyElseOwnsSince) {
  // Never durable; by the time the store answers again, another request owns the key.
  faults().inject(Fault::doubt_undone, is_event<event::Claim>, FaultStore::forever);
  ask("K");
  scheduler.advance(5s);
  Asked& other = ask(start(), "K");
  ASSERT_EQ(what(other), "execute");
  faults().heal();
  scheduler.advance(5s);
  EXPECT_EQ(condition("K"), Condition::processing);
  EXPECT_EQ(stored("K")->record.owner, other.execution().record().owner);
  EXPECT_EQ(engine().load().background, 0u);
}

TEST_F(ClaimInDoubt, ThatTookOverGoesBackAsAnEndedLeaseSoThatTheNextMayTakeOver) {
  Asking takeover;
  takeover.on_lease_expiry = OnLeaseExpiry::takeover;
  takeover.lease = 10s;
  Process& vanished = start();
  Asked& first = ask(vanished, "K", takeover);
  const OperationId operation = first.execution().record().operation_id;
  vanished.crash();
  scheduler.advance(10s);

  Process& second = start();
  second.faults.inject(Fault::stalled_after, is_event<event::Claim>);
  Asked& in_doubt = ask(second, "K", takeover);
  scheduler.advance(5s);
  EXPECT_EQ(what(in_doubt), "unavailable");
  second.faults.resume();
  scheduler.run_ready();
  EXPECT_EQ(condition("K"), Condition::processing) << "a release would have made it uncertain";

  Asked& next = ask(second, "K", takeover);
  ASSERT_EQ(what(next), "execute");
  EXPECT_EQ(next.execution().record().operation_id, operation);
  EXPECT_EQ(next.execution().record().attempts, 3u);
}

TEST_F(ClaimInDoubt, IsUnavailableAtOnceWhenTheStoreSaysThatNothingWasWritten) {
  faults().inject(Fault::refused, is_event<event::Claim>);
  const BootTime before = clock.boot_now();
  Asked& asked = ask("K");
  ASSERT_EQ(what(asked), "unavailable");
  EXPECT_EQ(asked.as<begun::Unavailable>().error.code, ErrorCode::unavailable);
  EXPECT_EQ(clock.boot_now(), before);
  EXPECT_EQ(engine().load().background, 0u);
}

TEST_F(ClaimInDoubt, AnExecuteThatArrivesAfterTheDeadlineIsReleased) {
  for (const Fault fault : {Fault::stalled, Fault::stalled_after}) {
    faults().inject(fault, is_event<event::Claim>);
    Asked& asked = ask("K");
    scheduler.advance(5s);
    EXPECT_EQ(what(asked), "unavailable");
    EXPECT_EQ(engine().load().background, 1u);
    scheduler.advance(60s);
    faults().resume();
    scheduler.run_ready();
    EXPECT_EQ(condition("K"), Condition::absent);
    EXPECT_EQ(asked.answers, 1);
    EXPECT_EQ(engine().load().background, 0u);
  }
}

TEST_F(ClaimInDoubt, OfAClientThatWentAwayGoesBack) {
  faults().inject(Fault::stalled_after, is_event<event::Claim>);
  Asked& asked = ask("K");
  engine().drop(asked.ticket);
  EXPECT_EQ(condition("K"), Condition::processing);
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(condition("K"), Condition::absent);
  EXPECT_EQ(asked.answers, 0);
  EXPECT_EQ(observer().lines, std::vector<std::string>{"begun dropped"});
}

TEST_F(ClaimInDoubt, DroppingATicketThatWasAnsweredChangesNothing) {
  Asked& asked = ask("K");
  engine().drop(asked.ticket);
  scheduler.run_ready();
  EXPECT_EQ(condition("K"), Condition::processing);
  asked.settle();
  scheduler.run_ready();
  EXPECT_EQ(how(asked), "recorded");
}

TEST_F(ClaimInDoubt, WaitersHearThatAnAttemptWhichWentBackIsReleased) {
  faults().inject(Fault::stalled_after, is_event<event::Claim>);
  Asked& owner = ask("K");
  Asked& waiter = ask("K", waiting());
  EXPECT_EQ(what(waiter), "nothing");
  engine().drop(owner.ticket);
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(what(waiter), "released");
}

TEST_F(ClaimInDoubt, WaitersForWhoTookOverDoNotHearOfAnEarlierAttemptThatCouldNotGoBack) {
  Asking under_takeover;
  under_takeover.on_lease_expiry = OnLeaseExpiry::takeover;
  faults().inject(Fault::stalled_after, is_event<event::Claim>);
  ask("K", under_takeover);
  scheduler.advance(31s);
  Asked& owner = ask(start(), "K", under_takeover);
  ASSERT_EQ(what(owner), "execute");
  Asking patient = under_takeover;
  patient.in_flight = InFlight::wait;
  Asked& waiter = ask("K", patient);
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(what(waiter), "nothing");
  owner.settle(201, "done");
  scheduler.advance(1s);
  EXPECT_EQ(what(waiter), "replay");
}

TEST_F(ClaimInDoubt, BackgroundListIsBoundedAndSaysWhatItGivesUp) {
  limits.background_writes = 2;
  faults().inject(Fault::doubt_done, is_event<event::Claim>, FaultStore::forever);
  for (int i = 0; i < 4; ++i) ask("K" + std::to_string(i));
  scheduler.advance(5s);
  EXPECT_EQ(engine().load().background, 2u);
  EXPECT_EQ(observer().count("alarm background_full"), 2);
  faults().heal();
  scheduler.advance(2s);
  EXPECT_EQ(engine().load().background, 0u);
  int left = 0;
  for (int i = 0; i < 4; ++i) left += condition("K" + std::to_string(i)) != Condition::absent;
  EXPECT_EQ(left, 2) << "what was given up is left to the end of its lease";
}

}  // namespace
}  // namespace einmal
