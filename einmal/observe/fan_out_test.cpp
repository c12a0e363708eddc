#include "einmal/observe/fan_out.hpp"

#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

class FanOutTest : public EngineTest {
 protected:
  FanOutTest() { told_instead = &both; }
  RecordingObserver one, two;
  FanOut both{&one, &two};
};

TEST_F(FanOutTest, TellsEveryObserverEverything) {
  Asking asking;
  asking.on_lease_expiry = OnLeaseExpiry::takeover;
  asking.lease = 3s;
  Asked& owner = ask("K", asking);
  ask("K", waiting(1s));
  scheduler.advance(2s);
  faults().inject(Fault::stalled, is_event<event::Renew>);
  scheduler.advance(4s);
  ask(start(), "K", asking);
  faults().resume();
  scheduler.run_ready();
  owner.settle();
  scheduler.run_ready();
  engine().start_sweeping(1s);
  engine().start_measuring(1s);
  scheduler.advance(3s);
  EXPECT_EQ(one.lines, two.lines);
  EXPECT_EQ(one.points, two.points);
  EXPECT_GE(one.count("renewed confirmed"), 1);
  EXPECT_EQ(one.count("wait_started"), 1);
  EXPECT_EQ(one.count("ownership_lost"), 1);
  EXPECT_EQ(one.count("late_result"), 1);
  EXPECT_GE(one.count("measured 1"), 1);
}

}  // namespace
}  // namespace einmal
