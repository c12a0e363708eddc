#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

#include "support/gateway.hpp"

/// Field cases C01 (the refused duplicate deletes the owner's record) and C02 (no deadline read as
/// abandoned), C12 and C13 as far as the gateway meets them: several processes on one file.

namespace einmal::test {
namespace {

using ::testing::AnyOf;

const std::string other_body = R"({"sku":"A-1","qty":2})";

class RefusedDuplicates : public GatewayTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(RefusedDuplicates, leave_the_record_of_the_owner_alone) {
  open({.defaults = GetParam()});
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "a"));
  auto owner = std::async(std::launch::async, [&] { return send(order("K")); });
  ASSERT_TRUE(upstream_.wait_for(1));
  // A duplicate, a mismatch, one that hangs up, and a duplicate again.
  auto b = std::async(std::launch::async, [&] { return send(order("K")); });
  EXPECT_EQ(in_words(send(order("K", other_body))), "422 mismatch key-reused");
  {
    RawClient d(gateway_->port());
    d.send(order("K"));
    d.reset();
  }
  EXPECT_EQ(in_words(b.get()), "409 in-progress in-progress");
  EXPECT_EQ(in_words(send(order("K"))), "409 in-progress in-progress");
  gate->open();
  EXPECT_EQ(in_words(owner.get()), "201 executed");
  // The same after completion.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(in_words(send(order("K"))), "201 replayed");
    EXPECT_EQ(in_words(send(order("K", other_body))), "422 mismatch key-reused");
  }
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

INSTANTIATE_TEST_SUITE_P(Policies, RefusedDuplicates,
                         ::testing::Values("in_flight = \"reject\"\n",
                                           "in_flight = \"wait\"\nwait = \"300ms\"\n"));

class SlowOwner : public GatewayTest {};

TEST_F(SlowOwner, is_not_presumed_gone_by_a_second_process_or_a_sweep_while_it_renews) {
  open({.defaults = "lease = \"1s\"\n"});
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "slow"));
  auto owner = std::async(std::launch::async, [&] { return send(order("K")); });
  ASSERT_TRUE(upstream_.wait_for(1));
  const auto second = another();
  const HttpClient through_second(second->port());
  // A key of the second process that expires is a clock: three leases pass.
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] {
    EXPECT_EQ(in_words(through_second.send(order("K"))), "409 in-progress in-progress");
    return std::chrono::steady_clock::now() - start > Milliseconds(3000);
  }));
  gate->open();
  EXPECT_EQ(in_words(owner.get()), "201 executed");
  EXPECT_EQ(in_words(through_second.send(order("K"))), "201 replayed");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

TEST_F(SlowOwner, killed_it_leaves_a_record_that_time_alone_never_runs_again) {
  open({.defaults = "lease = \"1s\"\n"});
  upstream_.next(Play().stall());
  RawClient client(gateway_->port());
  client.send(order("K"));
  ASSERT_TRUE(upstream_.wait_for(1));
  gateway_->kill();
  gateway_->restart();
  EXPECT_EQ(in_words(send_until_decided(order("K"))), "504 uncertain outcome-uncertain");
  gateway_->kill();
  gateway_->restart();
  EXPECT_EQ(in_words(send(order("K"))), "504 uncertain outcome-uncertain");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

}  // namespace
}  // namespace einmal::test
