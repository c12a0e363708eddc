#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "einmal/engine/observer.hpp"
#include "support/gateway.hpp"

/// Windows 3 and 4: the gateway is killed with -9 at every named point between the claim and the
/// answer, and started again on the same file.

namespace einmal::test {
namespace {

using ::testing::AnyOf;

/// What must be true once the gateway runs again and the dead owner's lease is over.
enum class Then {
  free_or_uncertain,    ///< The claim was on its way to the disk: there, or not. Nothing was sent.
  uncertain_no_effect,  ///< Owned, nothing was sent: still nobody can know it, so never run again.
  uncertain,            ///< The request went out, at least in part.
  uncertain_or_replay,  ///< The result was on its way to the disk.
  replay,               ///< Durable: the same bytes.
};

const std::map<Point, Then> expectations{
    {Point::claim_submitted, Then::free_or_uncertain},
    {Point::claim_durable, Then::uncertain_no_effect},
    {Point::before_first_byte, Then::uncertain_no_effect},
    {Point::first_byte_sent, Then::uncertain},
    {Point::request_sent, Then::uncertain},
    {Point::answer_started, Then::uncertain},
    {Point::answer_complete, Then::uncertain},
    {Point::settle_submitted, Then::uncertain_or_replay},
    {Point::settle_durable, Then::replay},
    {Point::before_answer, Then::replay},
    {Point::answer_sent, Then::replay},
};

class KilledAt : public GatewayTest, public ::testing::WithParamInterface<Point> {
 protected:
  /// A gateway that dies at the point, and the order during which it does.
  void kill_during_order() {
    gateway_ = std::make_unique<GatewayProcess>(
        directory_.path().string(),
        GatewaySetup{.upstream = upstream_.url(), .defaults = "lease = \"1s\"\n"});
    gateway_->start({{"EINMAL_KILL_AT", std::string(name(GetParam()))}});
    upstream_.always(Play().answer(201, "{\"id\":\"one\"}"));
    send(order("K"));
    const auto exit = gateway_->process().wait_for_exit();
    ASSERT_TRUE(exit) << "the point was not reached";
    ASSERT_EQ(exit->signal, SIGKILL);
    gateway_->restart();
  }
};

TEST_P(KilledAt, the_key_is_never_executed_twice_and_the_outcome_is_never_invented) {
  ASSERT_EQ(expectations.count(GetParam()), 1u) << "a new point needs an expectation";
  kill_during_order();
  // What the dead process had sent arrives all the same.
  const auto answer = send_until_decided(order("K"));
  const auto words = in_words(answer);
  const std::string uncertain = "504 uncertain outcome-uncertain";
  switch (expectations.at(GetParam())) {
    case Then::free_or_uncertain:
      EXPECT_THAT(words, AnyOf("201 executed", uncertain));
      EXPECT_EQ(upstream_.effects("K"), words == uncertain ? 0u : 1u);
      break;
    case Then::uncertain_no_effect:
      EXPECT_EQ(words, uncertain);
      EXPECT_EQ(upstream_.begun(), 0u);
      break;
    case Then::uncertain:
      EXPECT_EQ(words, uncertain);
      EXPECT_LE(upstream_.effects("K"), 1u);
      break;
    case Then::uncertain_or_replay:
      EXPECT_THAT(words, AnyOf("201 replayed", uncertain));
      EXPECT_EQ(upstream_.effects("K"), 1u);
      break;
    case Then::replay:
      EXPECT_EQ(words, "201 replayed");
      EXPECT_EQ(answer.body, "{\"id\":\"one\"}");
      EXPECT_EQ(upstream_.effects("K"), 1u);
      break;
  }
  // However often it is asked, the answer stays, and the upstream hears of nothing.
  const auto seen = upstream_.begun();
  for (int i = 0; i < 5; ++i) {
    const auto again = in_words(send(order("K")));
    EXPECT_EQ(again, words == "201 executed" ? "201 replayed" : words);
  }
  EXPECT_EQ(upstream_.begun(), seen);
  // The store works on: other keys execute.
  EXPECT_EQ(send(order("other")).status, 201);
}

std::string point_name(const ::testing::TestParamInfo<Point>& info) {
  return std::string(name(info.param));
}
INSTANTIATE_TEST_SUITE_P(EveryPoint, KilledAt, ::testing::ValuesIn(all_points), point_name);

class StoppedAt : public KilledAt {};

TEST_P(StoppedAt, past_its_lease_an_owner_that_wakes_up_sends_nothing_twice) {
  open({.defaults = "lease = \"1s\"\n"});
  GatewayProcess stalling(directory_.path().string(), gateway_->setup());
  stalling.start({{"EINMAL_STOP_AT", std::string(name(GetParam()))}});
  upstream_.always(Play().answer(201, "{\"id\":\"one\"}"));
  RawClient client(stalling.port());
  client.send(order("K"));
  ASSERT_TRUE(eventually([&] { return stalling.process().is_stopped(); }));
  // The other gateway sees the lease run out.
  const auto while_stopped = send_until_decided(order("K"));
  stalling.process().resume();
  const auto late = client.read_answer();
  auto after = send_until_decided(order("K"));
  EXPECT_LE(upstream_.effects("K"), 1u);
  if (status_of(late) == "unrecorded") {  // Writing goes on in the background.
    EXPECT_TRUE(eventually([&] {
      after = send(order("K"));
      return after.status == 201;
    }));
  }
  // Whatever the late owner told its client, a success is the recorded one and says so for good.
  if (late.status == 201) {
    EXPECT_EQ(late.body, "{\"id\":\"one\"}") << in_words(late);
    EXPECT_EQ(in_words(after), "201 replayed") << "the late owner said " << in_words(late);
  } else {
    // In progress: its claim met the other's transaction, and the answer waited while it stood
    // still.
    EXPECT_THAT(in_words(late), AnyOf("504 uncertain outcome-uncertain", "503 released released",
                                      "409 in-progress in-progress"));
  }
  if (while_stopped.status == 201) {
    EXPECT_EQ(in_words(after), "201 replayed");
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPoint, StoppedAt, ::testing::ValuesIn(all_points), point_name);

TEST(Points, the_killable_gateway_lists_the_points_that_the_tests_walk) {
  ChildProcess listing({sibling_program("einmal_killable"), "--points"});
  ASSERT_EQ(listing.wait_for_exit(), (Exit{0, 0}));
  std::istringstream lines(listing.output());
  std::set<std::string> listed, walked;
  for (std::string line; std::getline(lines, line);) listed.insert(line);
  for (const auto& [point, then] : expectations) walked.insert(std::string(name(point)));
  EXPECT_EQ(listed, walked);
}

}  // namespace
}  // namespace einmal::test
