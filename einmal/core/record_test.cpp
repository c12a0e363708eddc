#include "einmal/core/record.hpp"

#include "einmal/core/decide_fixture.hpp"

namespace einmal {
namespace {

using namespace decide_fixture;

TEST(Condition, FollowsTheClockAndNotTheSweep) {
  const Record anew = settled(State::completed);
  EXPECT_EQ(condition(anew, at(1h - 1us)), Condition::completed);
  EXPECT_EQ(condition(anew, at(1h)), Condition::absent);
  const Record refuse = settled(State::failed, refusing());
  EXPECT_EQ(condition(refuse, at(1h - 1us)), Condition::failed);
  EXPECT_EQ(condition(refuse, at(1h)), Condition::tombstone);
  EXPECT_EQ(condition(refuse, at(3h - 1us)), Condition::tombstone);
  EXPECT_EQ(condition(refuse, at(3h)), Condition::absent);
}

TEST(Condition, OfWhatIsNotSettledDoesNotDependOnTheClock) {
  EXPECT_EQ(condition(std::nullopt, at(0s)), Condition::absent);
  EXPECT_EQ(condition(processing(), at(9000h)), Condition::processing);
  EXPECT_EQ(condition(uncertain(UncertainCause::lease_end), at(9000h)), Condition::uncertain);
  EXPECT_EQ(condition(settled(State::freed), at(0s)), Condition::absent);
}

TEST(Condition, OfAFinalRecordWithoutResultIsATombstoneSinceThereIsNothingToReplay) {
  Record stripped = settled(State::completed);
  stripped.result.reset();
  EXPECT_EQ(condition(stripped, at(1s)), Condition::tombstone);
}

TEST(Live, IsWhatIsOpenSettledOrATombstone) {
  EXPECT_TRUE(is_live(processing(), at(9000h)));
  EXPECT_TRUE(is_live(uncertain(UncertainCause::outcome_unknown), at(9000h)));
  EXPECT_TRUE(is_live(settled(State::completed), at(1s)));
  EXPECT_TRUE(is_live(settled(State::completed, refusing()), at(2h)));
  EXPECT_FALSE(is_live(settled(State::completed), at(1h)));
  EXPECT_FALSE(is_live(settled(State::freed), at(1s)));
}

TEST(LeaseLeft, IsNeverMoreThanItsLengthAndNeverNegative) {
  EXPECT_EQ(lease_left(processing(), at(10s)), Duration(20s));
  EXPECT_EQ(lease_left(processing(), at(31s)), Duration::zero());
  Record damaged = processing();
  damaged.lease->end += 9000h;
  EXPECT_EQ(lease_left(damaged, at(0s)), Duration(30s));
}

TEST(LeaseLeft, OfAMissingLeaseIsUnknownAndOfAnotherBootZero) {
  EXPECT_EQ(lease_left(processing(without_lease()), at(9000h)), std::nullopt);
  Now rebooted = at(0s);
  rebooted.boot_id = next_boot;
  EXPECT_EQ(lease_left(processing(), rebooted), Duration::zero());
}

}  // namespace
}  // namespace einmal
