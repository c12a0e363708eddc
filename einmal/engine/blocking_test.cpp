#include "einmal/engine/blocking.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

class Blocking : public ::testing::Test {
 protected:
  static BeginRequest request(const std::string& key, InFlight in_flight = InFlight::reject,
                              Duration wait = 30s) {
    Policies policies;
    policies.lease = 30s;
    return {*Scope::make("app", "alice", "create-order", key),
            policies,
            in_flight,
            wait,
            5s,
            std::make_shared<TextFingerprint>("body", "v1", std::vector<std::string>{"v1"})};
  }
  static StoredResult result(std::string body) {
    StoredResult made;
    made.status = 201;
    made.body = std::move(body);
    return made;
  }
  Condition condition(const std::string& key) {
    const Scope scope = *Scope::make("app", "alice", "create-order", key);
    auto answer = ask(store_, request::ReadScope{scope, true});
    const auto& found = std::get<answer::Found>(*answer).record;
    return found ? found->condition : Condition::absent;
  }

  SystemClock clock_;
  SystemRandom random_;
  MemoryStore store_{clock_, random_};
  std::optional<BlockingEngine> engine_{std::in_place, store_, clock_, random_, no_observer()};
};

TEST_F(Blocking, ExecutesOnceAndReplaysToTheOthers) {
  std::atomic<int> effects = 0;
  std::atomic<int> replays = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      auto begun = engine_->begin(request("K", InFlight::wait));
      if (auto* owned = std::get_if<OwnedAttempt>(&begun)) {
        ASSERT_TRUE(owned->confirm());
        ++effects;
        const Finished finished = owned->settle(event::Final::completed, result("order 7"));
        EXPECT_TRUE(std::holds_alternative<finished::Recorded>(finished));
      } else if (auto* replay = std::get_if<begun::Replay>(&begun)) {
        EXPECT_EQ(replay->record->result->body, "order 7");
        ++replays;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(effects, 1);
  EXPECT_EQ(replays, 15);
}

TEST_F(Blocking, AnAttemptThatIsDroppedUnfinishedIsUncertain) {
  {
    auto begun = engine_->begin(request("K"));
    ASSERT_TRUE(std::holds_alternative<OwnedAttempt>(begun));
  }
  EXPECT_TRUE(std::holds_alternative<begun::Uncertain>(engine_->begin(request("K"))));
}

TEST_F(Blocking, AReleasedKeyMayComeAgain) {
  {
    auto begun = engine_->begin(request("K"));
    EXPECT_TRUE(
        std::holds_alternative<finished::Recorded>(std::get<OwnedAttempt>(begun).release()));
  }
  EXPECT_TRUE(std::holds_alternative<OwnedAttempt>(engine_->begin(request("K"))));
}

TEST_F(Blocking, AnAttemptMayBeMovedAndFinishedElsewhere) {
  auto begun = engine_->begin(request("K"));
  OwnedAttempt attempt = std::move(std::get<OwnedAttempt>(begun));
  std::thread([&] {
    OwnedAttempt mine = std::move(attempt);
    EXPECT_FALSE(mine.lost().stop_requested());
    mine.mark_uncertain();
    mine.settle(event::Final::completed, result("known after all"));
  }).join();
  EXPECT_EQ(condition("K"), Condition::completed);
}

TEST_F(Blocking, DestroyingTheEngineGivesBackWhatIsOpenAndTheAttemptKnows) {
  auto begun = engine_->begin(request("K"));
  engine_->with_engine([](Engine& engine) { EXPECT_EQ(engine.load().executions, 1u); });
  engine_.reset();
  EXPECT_EQ(condition("K"), Condition::uncertain);
  auto& attempt = std::get<OwnedAttempt>(begun);
  EXPECT_FALSE(attempt.confirm());
  const Finished finished = attempt.settle(event::Final::completed, result("too late"));
  EXPECT_TRUE(std::holds_alternative<finished::Unrecorded>(finished));
  EXPECT_EQ(condition("K"), Condition::uncertain);
}

TEST(SchedulerThread, RunsTimersInTheirOrderAndNotTheCancelled) {
  const SystemClock clock;
  SchedulerThread scheduler(clock);
  std::promise<void> last;
  std::vector<int> ran;
  scheduler.run([&] {
    scheduler.run_after(20ms, [&] {
      ran.push_back(2);
      last.set_value();
    });
    scheduler.run_after(1ms, [&] { ran.push_back(1); });
    const auto cancelled = scheduler.run_after(2ms, [&] { ran.push_back(3); });
    scheduler.cancel(cancelled);
  });
  last.get_future().wait();
  scheduler.run([&] { EXPECT_EQ(ran, (std::vector<int>{1, 2})); });
}

// Field report C10, library part: a missing key or caller is an error, never a shared record.
TEST_F(Blocking, AnEmptyKeyOrCallerIsAnErrorBeforeAnyClaim) {
  EXPECT_EQ(Scope::make("app", "alice", "create-order", "").error().code, ErrorCode::invalid);
  EXPECT_EQ(Scope::make("app", "", "create-order", "K").error().code, ErrorCode::invalid);
  EXPECT_EQ(Scope::make("app", "alice", "", "K").error().code, ErrorCode::invalid);
  EXPECT_EQ(Scope::make("", "alice", "create-order", "K").error().code, ErrorCode::invalid);
  EXPECT_EQ(Scope::make("app", "alice", "create-order", "  ").error().code, ErrorCode::invalid);
  auto stats = ask(store_, request::Stats{});
  EXPECT_EQ(std::get<answer::Stats>(*stats).last_generation, Generation{});
}

}  // namespace
}  // namespace einmal
