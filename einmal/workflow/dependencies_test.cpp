#include "einmal/workflow/dependencies.hpp"

#include <gtest/gtest.h>

#include "einmal/testing/virtual_clock.hpp"

namespace einmal::workflow {
namespace {

using namespace std::chrono_literals;

class DependenciesTest : public ::testing::Test {
 protected:
  einmal::testing::VirtualClock clock_;
  SeededRandom random_{7};
};

TEST_F(DependenciesTest, PausesAreAnyPartOfAnExponentThatIsBounded) {
  const DependencyLimits limits;
  for (int attempt = 1; attempt < 40; ++attempt) {
    const Duration most = std::min<Duration>(
        limits.longest_pause, limits.first_pause * (std::int64_t{1} << std::min(attempt - 1, 20)));
    Duration low = most, high{};
    for (int i = 0; i < 400; ++i) {
      const Duration pause = pause_after(attempt, limits, random_);
      low = std::min(low, pause);
      high = std::max(high, pause);
    }
    EXPECT_LE(high, most);
    EXPECT_GT(high, most * 9 / 10);
    EXPECT_LT(low, most / 10);
  }
}

TEST_F(DependenciesTest, RetriesAreAShareOfFirstAttempts) {
  DependencyLimits limits;
  limits.retries_per_second = 0;
  limits.most_saved = 2;
  Dependencies dependencies(clock_, random_, limits);
  const auto admitted = [&](bool retry) { return dependencies.admit("p", retry) == 0s; };
  EXPECT_TRUE(admitted(true));
  EXPECT_TRUE(admitted(true));
  EXPECT_FALSE(admitted(true));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(admitted(false));
  EXPECT_TRUE(admitted(true));
  EXPECT_FALSE(admitted(true));
}

TEST_F(DependenciesTest, RetriesGoOnSlowlyWhenNothingNewComes) {
  DependencyLimits limits;
  limits.most_saved = 1;
  Dependencies dependencies(clock_, random_, limits);
  int admitted = 0;
  for (int i = 0; i < 1000; ++i) {
    admitted += dependencies.admit("p", true) == 0s ? 1 : 0;
    clock_.advance(10ms);
  }
  EXPECT_GE(admitted, 10);
  EXPECT_LE(admitted, 11);
}

TEST_F(DependenciesTest, ACircuitOpensAfterFailuresAndLetsOneTryLater) {
  const DependencyLimits limits;
  Dependencies dependencies(clock_, random_, limits);
  for (int i = 0; i < limits.failures_to_open; ++i) {
    EXPECT_EQ(dependencies.admit("p", false), 0s);
    dependencies.ended("p", false);
  }
  EXPECT_GT(dependencies.admit("p", false), 0s);
  EXPECT_EQ(dependencies.admit("another", false), 0s);
  clock_.advance(2 * limits.open_for);
  EXPECT_EQ(dependencies.admit("p", true), 0s);
  EXPECT_GT(dependencies.admit("p", true), 0s) << "one only, until it has ended";
  dependencies.withdrawn("p");
  EXPECT_EQ(dependencies.admit("p", true), 0s) << "an attempt that was not made decides nothing";
  dependencies.ended("p", false);
  EXPECT_GT(dependencies.admit("p", true), 0s);
  clock_.advance(2 * limits.open_for);
  EXPECT_EQ(dependencies.admit("p", true), 0s);
  dependencies.ended("p", true);
  EXPECT_EQ(dependencies.admit("p", false), 0s);
  EXPECT_EQ(dependencies.admit("p", false), 0s);
}

}  // namespace
}  // namespace einmal::workflow
