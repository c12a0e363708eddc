#include "einmal/engine/leased.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <type_traits>

#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

// Misuse that must not compile: saying "no effect" without a proof.
static_assert(!std::is_default_constructible_v<NoEffect>);
static_assert(!std::is_constructible_v<NoEffect, std::string>);
static_assert(!std::is_default_constructible_v<leased::Released>);
static_assert(!std::is_convertible_v<std::optional<NoEffect>, leased::Released>);
static_assert(!std::is_copy_constructible_v<OutsideCall>);

class Leased : public ::testing::Test {
 protected:
  using Run = std::function<LeasedOutcome(LeasedAttempt&)>;

  LeasedAnswer run(const Run& handler) {
    Policies policies;
    policies.lease = 30s;
    return run_leased(
        engine_,
        {scope_, policies, InFlight::reject, 0s, 5s,
         std::make_shared<TextFingerprint>("body", "v1", std::vector<std::string>{"v1"})},
        handler);
  }
  static StoredResult result(int status) {
    StoredResult made;
    made.status = status;
    return made;
  }
  Condition condition() {
    auto answer = ask(store_, request::ReadScope{scope_, true});
    const auto& found = std::get<answer::Found>(*answer).record;
    return found ? found->condition : Condition::absent;
  }

  SystemClock clock_;
  SystemRandom random_;
  MemoryStore store_{clock_, random_};
  BlockingEngine engine_{store_, clock_, random_, no_observer()};
  const Scope scope_ = *Scope::make("app", "alice", "pay", "k");
};

TEST_F(Leased, RecordsWhatTheHandlerSaysAndReplaysIt) {
  const auto first = run([](LeasedAttempt& attempt) -> LeasedOutcome {
    EXPECT_TRUE(attempt.call.first_byte());
    return leased::Failed{result(402)};
  });
  EXPECT_TRUE(std::holds_alternative<finished::Recorded>(std::get<RanLeased>(first).finished));
  const auto second = run([](LeasedAttempt&) -> LeasedOutcome {
    ADD_FAILURE() << "ran twice";
    return leased::Completed{result(201)};
  });
  EXPECT_EQ(std::get<begun::Replay>(second).record->result->status, 402);
}

TEST_F(Leased, NothingSentIsAProofUntilTheFirstByte) {
  run([](LeasedAttempt& attempt) -> LeasedOutcome {
    EXPECT_TRUE(attempt.call.nothing_sent());
    return leased::Released{*attempt.call.nothing_sent()};
  });
  EXPECT_EQ(condition(), Condition::absent);
  run([](LeasedAttempt& attempt) -> LeasedOutcome {
    EXPECT_TRUE(attempt.call.first_byte());
    EXPECT_FALSE(attempt.call.nothing_sent());
    return leased::Uncertain{"timeout", std::nullopt};
  });
  EXPECT_EQ(condition(), Condition::uncertain);
}

TEST_F(Leased, AnExceptionLeavesTheRecordUncertainAndGoesThrough) {
  EXPECT_THROW(run([](LeasedAttempt& attempt) -> LeasedOutcome {
                 EXPECT_TRUE(attempt.call.first_byte());
                 throw std::runtime_error("connection reset");
               }),
               std::runtime_error);
  EXPECT_EQ(condition(), Condition::uncertain);
}

TEST_F(Leased, WhatTheOtherSideSaidItDidNotBeginIsReleased) {
  run([](LeasedAttempt& attempt) -> LeasedOutcome {
    EXPECT_TRUE(attempt.call.first_byte());
    return leased::Released{NoEffect::told("429")};
  });
  EXPECT_EQ(condition(), Condition::absent);
}

}  // namespace
}  // namespace einmal
