#include "einmal/gateway/gateway_fixture.hpp"

namespace einmal::test {
namespace {

class KeyedRequests : public GatewayTest {};

TEST_F(KeyedRequests, AreExecutedOnceAndReplayed) {
  start();
  const auto first = send_order("K1");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.header("Idempotency-Status"), "executed");
  EXPECT_FALSE(first.header("Idempotency-Expires").empty());
  EXPECT_EQ(first.header("Idempotent-Replayed"), "");

  const auto second = send_order("K1");
  EXPECT_EQ(second.status, 201);
  EXPECT_EQ(second.body, first.body);
  EXPECT_EQ(second.header("Idempotency-Status"), "replayed");
  EXPECT_EQ(second.header("Idempotent-Replayed"), "true");
  EXPECT_EQ(second.header("Cache-Control"), "no-store");
  EXPECT_EQ(upstream_.effects("K1"), 1U);
}

TEST_F(KeyedRequests, AreReplayedAfterARestartOnTheSameFile) {
  start();
  const auto first = send_order("K1");
  stop();
  start();
  const auto second = send_order("K1");
  EXPECT_EQ(second.body, first.body);
  EXPECT_EQ(second.header("Idempotency-Status"), "replayed");
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(KeyedRequests, WithAnotherBodyAreRefusedAndChangeNothing) {
  start();
  const auto first = send_order("K1");
  const auto other = send_order("K1", R"({"amount":11})");
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(other.member("reason"), "key-reused");
  EXPECT_EQ(other.header("Idempotency-Status"), "mismatch");
  EXPECT_EQ(send_order("K1", R"({ "amount": 1e1 })").body, first.body);
  EXPECT_EQ(upstream_.count(), 1U);
}

}  // namespace
}  // namespace einmal::test
