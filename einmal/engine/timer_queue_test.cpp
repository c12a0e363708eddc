#include "einmal/engine/timer_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "einmal/base/random.hpp"
#include "einmal/testing/virtual_scheduler.hpp"

namespace einmal::detail {
namespace {

using namespace std::chrono_literals;

class Timers : public ::testing::Test {
 protected:
  Timer& make(int number) {
    timers_.push_back(std::make_unique<Timer>(queue_, [this, number] { ran_.push_back(number); }));
    return *timers_.back();
  }
  BootTime in(Duration delay) { return clock_.boot_now() + delay; }

  einmal::testing::VirtualClock clock_;
  einmal::testing::VirtualScheduler scheduler_{clock_};
  TimerQueue queue_{scheduler_, clock_};
  std::vector<std::unique_ptr<Timer>> timers_;
  std::vector<int> ran_;
};

TEST_F(Timers, RunInTheOrderOfTheirTimesAndThenAsTheyWereSet) {
  make(1).set(in(3s));
  make(2).set(in(1s));
  make(3).set(in(3s));
  make(4).set(in(2s));
  scheduler_.advance(3s);
  EXPECT_EQ(ran_, (std::vector<int>{2, 4, 1, 3}));
}

TEST_F(Timers, NeverRunInsideTheCallThatSetsThem) {
  make(1).set(in(-1s));
  EXPECT_TRUE(ran_.empty());
  scheduler_.run_ready();
  EXPECT_EQ(ran_.size(), 1u);
}

TEST_F(Timers, SettingAgainReplacesAndCancellingForgets) {
  make(1).set(in(1s));
  timers_[0]->set(in(2s));
  make(2).set(in(1s));
  timers_[1]->cancel();
  scheduler_.advance(1500ms);
  EXPECT_TRUE(ran_.empty());
  scheduler_.advance(500ms);
  EXPECT_EQ(ran_, std::vector<int>{1});
  EXPECT_FALSE(timers_[0]->is_set());
}

TEST_F(Timers, ThatSetThemselvesForNowDoNotStarveTheThread) {
  int runs = 0;
  Timer eager(queue_, [&] {
    if (++runs < 1000) eager.set(clock_.boot_now());
  });
  bool posted_ran = false;
  eager.set(clock_.boot_now());
  scheduler_.post([&] { posted_ran = true; });
  scheduler_.run_ready();
  EXPECT_TRUE(posted_ran);
  EXPECT_EQ(runs, 1000);
}

TEST_F(Timers, DestroyedByAnotherOfTheSameMomentDoNotRun) {
  std::unique_ptr<Timer> victim;
  Timer killer(queue_, [&] { victim.reset(); });
  killer.set(in(1s));
  victim = std::make_unique<Timer>(queue_, [&] { ran_.push_back(1); });
  victim->set(in(1s));
  scheduler_.advance(2s);
  EXPECT_TRUE(ran_.empty());
}

TEST_F(Timers, DeadlinesThatAreCancelledInTimeCostTheSchedulerNothing) {
  make(0).set(in(1s));
  const auto armings = scheduler_.armings();
  for (int i = 0; i < 1000; ++i) {
    Timer& deadline = make(i);
    deadline.set(in(5s));
    deadline.cancel();
  }
  EXPECT_EQ(scheduler_.armings(), armings);
}

TEST_F(Timers, AgreeWithASortedListOverRandomCommands) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  SeededRandom random(seed);
  std::vector<std::pair<BootTime, int>> expected;
  for (int i = 0; i < 500; ++i) make(i);
  for (int step = 0; step < 5000; ++step) {
    const int number = static_cast<int>(random.below(500));
    std::erase_if(expected, [&](const auto& entry) { return entry.second == number; });
    if (random.below(3) == 0) {
      timers_[static_cast<std::size_t>(number)]->cancel();
    } else {
      const BootTime at = in(Duration(random.below(50)));
      timers_[static_cast<std::size_t>(number)]->set(at);
      expected.emplace_back(at, number);
    }
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  scheduler_.advance(1s);
  std::vector<int> order;
  for (const auto& entry : expected) order.push_back(entry.second);
  EXPECT_EQ(ran_, order);
}

}  // namespace
}  // namespace einmal::detail
