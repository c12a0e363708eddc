#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

class Stop : public EngineTest {
 protected:
  void drain() {
    engine().drain([this] { ++idle; });
    scheduler.run_ready();
  }
  void stop() {
    engine().stop([this] { ++stopped; });
    scheduler.run_ready();
  }
  int idle = 0, stopped = 0;
};

TEST_F(Stop, DrainingRefusesNewRequestsAndSendsWaitersAway) {
  Asked& owner = ask("K");
  Asked& waiter = ask("K", waiting(60s));
  drain();
  EXPECT_EQ(what(waiter), "in_progress");
  EXPECT_EQ(what(ask("K2")), "draining");
  EXPECT_EQ(what(ask("K")), "draining");
  EXPECT_EQ(idle, 0);
  owner.settle();
  scheduler.run_ready();
  EXPECT_EQ(how(owner), "recorded");
  EXPECT_EQ(idle, 1);
}

TEST_F(Stop, DrainingWaitsForClaimsExecutionsAndUnrecordedWrites) {
  faults().inject(Fault::stalled, is_event<event::Claim>);
  Asked& claiming = ask("K1");
  Asked& executing = ask("K2");
  Asked& writing = ask("K3");
  faults().inject(Fault::refused, is_event<event::Settle>, FaultStore::forever);
  writing.settle();
  scheduler.advance(5s - 1us);
  drain();
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(what(claiming), "execute") << "claimed before the drain, it may run";
  claiming.release();
  scheduler.advance(1us);
  EXPECT_EQ(how(writing), "unrecorded");
  executing.mark_uncertain();
  scheduler.run_ready();
  EXPECT_EQ(idle, 0);
  faults().heal();
  scheduler.advance(2s);
  EXPECT_EQ(idle, 1);
  EXPECT_EQ(condition("K3"), Condition::completed);
}

TEST_F(Stop, DrainingWithNothingInHandIsIdleAtOnceButNotInsideTheCall) {
  engine().drain([this] { ++idle; });
  EXPECT_EQ(idle, 0);
  scheduler.run_ready();
  EXPECT_EQ(idle, 1);
}

TEST_F(Stop, DrainingEndsSweepingAndMeasuring) {
  engine().start_sweeping(10s);
  engine().start_measuring(10s);
  drain();
  faults().forget_counts();
  scheduler.advance(100s);
  EXPECT_EQ(faults().count(testing::is_any), 0u);
  EXPECT_EQ(scheduler.timers(), 0u);
}

TEST_F(Stop, OpenExecutionsAreMarkedUncertainByTheirStoppedOwner) {
  Asked& owner = ask("K");
  drain();
  stop();
  EXPECT_EQ(condition("K"), Condition::uncertain);
  EXPECT_EQ(stored("K")->record.cause, UncertainCause::owner_stopped);
  EXPECT_EQ(stopped, 1);
  owner.give_up_execution();
  scheduler.run_ready();
  EXPECT_EQ(stored("K")->record.cause, UncertainCause::owner_stopped);
}

TEST_F(Stop, UnderTakeoverTheLeaseEndsSoThatTheNextProcessGoesOnAtOnce) {
  Asking asking;
  asking.on_lease_expiry = OnLeaseExpiry::takeover;
  Asked& owner = ask("K", asking);
  stop();
  EXPECT_EQ(stopped, 1);
  Asked& next = ask(start(), "K", asking);
  ASSERT_EQ(what(next), "execute");
  EXPECT_EQ(next.execution().record().operation_id, owner.execution().record().operation_id);
}

TEST_F(Stop, ARecordWithoutALeaseIsUncertainToo) {
  Asking asking;
  asking.lease.reset();
  ask("K", asking);
  stop();
  EXPECT_EQ(condition("K"), Condition::uncertain);
}

TEST_F(Stop, UnrecordedWritesAreTriedOnceMore) {
  Asked& owner = ask("K");
  faults().inject(Fault::refused, is_event<event::Settle>, FaultStore::forever);
  owner.settle();
  scheduler.advance(6s);
  faults().heal();
  stop();
  EXPECT_EQ(condition("K"), Condition::completed);
  EXPECT_EQ(stopped, 1);
}

TEST_F(Stop, WritesThatFailThenAreGivenUpAndSaid) {
  Asked& owner = ask("K");
  faults().inject(Fault::refused, testing::is_any, FaultStore::forever);
  owner.settle();
  stop();
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(how(owner), "unrecorded");
  EXPECT_EQ(observer().count("finished complete given_up"), 1);
}

TEST_F(Stop, AClaimOnItsWayGoesBack) {
  faults().inject(Fault::stalled_after, is_event<event::Claim>);
  Asked& claiming = ask("K");
  stop();
  EXPECT_EQ(what(claiming), "draining");
  EXPECT_EQ(stopped, 0);
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(condition("K"), Condition::absent);
  EXPECT_EQ(stopped, 1);
}

TEST_F(Stop, AClaimThatWaitsForItsNextTryToGoBackTriesOnceAndNotTwiceAtATime) {
  faults().inject(Fault::doubt_undone, is_event<event::Claim>, FaultStore::forever);
  Asked& claiming = ask("K");
  scheduler.advance(5s + 1ms);
  ASSERT_EQ(what(claiming), "unavailable");
  faults().heal();
  faults().inject(Fault::stalled, is_event<event::Claim>);
  stop();
  EXPECT_EQ(faults().stalled(), 1u);
  scheduler.advance(2s);
  EXPECT_EQ(faults().stalled(), 1u);
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(condition("K"), Condition::absent);
  EXPECT_EQ(stopped, 1);
}

TEST_F(Stop, AStoreThatDoesNotAnswerHoldsItUpNoLongerThanTheStoreDeadline) {
  ask("K");
  faults().inject(Fault::stalled, testing::is_any, FaultStore::forever);
  stop();
  scheduler.advance(5s - 1us);
  EXPECT_EQ(stopped, 0);
  scheduler.advance(1us);
  EXPECT_EQ(stopped, 1);
}

TEST_F(Stop, AnAnswerThatComesAfterItsLeaseWasGivenBackStillSettles) {
  Asking under_takeover;
  under_takeover.on_lease_expiry = OnLeaseExpiry::takeover;
  Asked& uncertain = ask("K1");
  Asked& ended = ask("K2", under_takeover);
  ask("K3");
  const auto of_k3 = [](const Request& request) {
    const auto* transition = std::get_if<request::Transition>(&request);
    return transition && transition->scope.key() == "K3";
  };
  faults().inject(Fault::stalled, of_k3);
  stop();
  scheduler.run_ready();
  ASSERT_EQ(condition("K1"), Condition::uncertain);
  ASSERT_EQ(stopped, 0);
  uncertain.settle(201, "late");
  ended.settle(201, "late");
  scheduler.run_ready();
  EXPECT_EQ(how(uncertain), "recorded");
  EXPECT_EQ(how(ended), "recorded");
  EXPECT_EQ(condition("K1"), Condition::completed);
  EXPECT_EQ(condition("K2"), Condition::completed);
  faults().resume();
}

TEST_F(Stop, AnAnswerThatComesWhileTheProcessStopsStillSettles) {
  Asked& owner = ask("K");
  faults().inject(Fault::stalled, is_event<event::Abandon>);
  stop();
  owner.settle(201, "just in time");
  EXPECT_EQ(stopped, 0);
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(how(owner), "recorded");
  EXPECT_EQ(condition("K"), Condition::completed);
  EXPECT_EQ(stopped, 1);
}

}  // namespace
}  // namespace einmal
