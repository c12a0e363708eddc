#include "einmal/core/clock_guard.hpp"

#include "einmal/core/decide_fixture.hpp"

namespace einmal {
namespace {

using namespace decide_fixture;

ClockLook look(Duration wall, Duration boot, BootId boot_id = this_boot) {
  return {wall_start + wall, boot_start + boot, boot_id};
}

TEST(ClockGuard, IsQuietWhileTheClocksAgreeHoweverLongNobodyLooked) {
  ClockGuard guard;
  EXPECT_FALSE(guard.look(look(0s, 0s)));
  EXPECT_FALSE(guard.look(look(1s, 1s)));
  EXPECT_FALSE(guard.look(look(9000h, 9000h)));
}

TEST(ClockGuard, PausesWhenTheWallClockGainsMoreThanSixtySeconds) {
  ClockGuard guard;
  guard.look(look(0s, 0s));
  EXPECT_FALSE(guard.look(look(61s, 1s)));
  EXPECT_TRUE(guard.look(look(122s + 1us, 2s)));
}

TEST(ClockGuard, StaysPausedUntilTheClocksAgreeAgain) {
  ClockGuard guard;
  guard.look(look(0s, 0s));
  EXPECT_TRUE(guard.look(look(24h, 1s)));
  EXPECT_TRUE(guard.look(look(24h + 1h, 1h)));
  EXPECT_FALSE(guard.look(look(1h + 1s, 1h + 1s)));
  EXPECT_FALSE(guard.look(look(1h + 2s, 1h + 2s)));
}

TEST(ClockGuard, GoesOnOnceAnOperatorAccepted) {
  ClockGuard guard;
  guard.look(look(0s, 0s));
  EXPECT_TRUE(guard.look(look(24h, 1s)));
  guard.accept(look(24h, 1s));
  EXPECT_FALSE(guard.look(look(24h + 1s, 2s)));
  EXPECT_TRUE(guard.look(look(48h, 3s)));
}

TEST(ClockGuard, FollowsAClockThatGoesBackAndNoticesItsReturn) {
  ClockGuard guard;
  guard.look(look(24h, 0s));
  EXPECT_FALSE(guard.look(look(0s, 1s)));
  EXPECT_TRUE(guard.look(look(24h, 2s)));
}

TEST(ClockGuard, HasNothingToCompareWithAfterAReboot) {
  ClockGuard guard;
  guard.look(look(0s, 0s));
  EXPECT_FALSE(guard.look(look(48h, -1h, next_boot)));
  EXPECT_TRUE(guard.look(look(96h, -1h, next_boot)));
}

TEST(ClockGuard, KeepsAPauseAcrossRestartAndRebootUntilItIsAccepted) {
  ClockGuard first;
  first.look(look(0s, 0s));
  first.look(look(24h, 1s));
  ClockGuard restarted(first.state());
  EXPECT_TRUE(restarted.look(look(24h, 2s)));
  EXPECT_TRUE(restarted.look(look(24h, 0s, next_boot)));
  restarted.accept(look(24h, 1s, next_boot));
  EXPECT_FALSE(restarted.look(look(24h, 2s, next_boot)));
}

}  // namespace
}  // namespace einmal
