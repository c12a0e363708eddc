#include <atomic>

#include "einmal/gateway/gateway_fixture.hpp"

/// What an operation promises and what a caller may take: quotas, dialects, in_flight =
/// "operation".

namespace einmal::test {
namespace {

class Quotas : public GatewayTest {
 protected:
  HttpAnswer send_as(const std::string& caller, const std::string& key) {
    auto request = order(key);
    for (auto& line : request.headers) {
      if (line.first == "X-Caller") line.second = caller;
    }
    return send(request);
  }
};

TEST_F(Quotas, OfLiveRecordsRefuseNewKeysOfThatCallerAndNeverARepeat) {
  config_.limits.live_per_caller = 3;
  start();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send_order("K" + std::to_string(i)).status, 201);
  const auto refused = send_order("K3");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.member("reason"), "quota");
  EXPECT_EQ(refused.member("retryable"), "true");
  EXPECT_FALSE(refused.header("Retry-After").empty());
  EXPECT_EQ(refused.header("Idempotency-Status"), "rejected");
  EXPECT_EQ(upstream_.begun(), 3U);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(send_order("K" + std::to_string(i)).header("Idempotency-Status"), "replayed");
  EXPECT_EQ(send_order("K0", R"({"amount":11})").member("reason"), "key-reused");
  EXPECT_EQ(send_as("globex", "K3").header("Idempotency-Status"), "executed");
}

TEST_F(Quotas, OfLiveRecordsHaveRoomAgainWhenRetentionEnds) {
  config_.limits.live_per_caller = 2;
  operation().policies.retention = std::chrono::milliseconds(200);
  start();
  EXPECT_EQ(send_order("K0").status, 201);
  EXPECT_EQ(send_order("K1").status, 201);
  EXPECT_TRUE(eventually([&] { return send_order("K2").status == 201; }));
}

TEST_F(Quotas, OfUncertainRecordsKeepACallerFromMakingMoreOfThem) {
  config_.limits.uncertain_per_caller = 2;
  start();
  upstream_.always(Play().reset());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(send_order("K" + std::to_string(i)).member("reason"), "outcome-uncertain");
  const auto refused = send_order("K2");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.member("reason"), "quota");
  EXPECT_EQ(upstream_.begun(), 2U);
  EXPECT_EQ(send_order("K0").member("reason"), "outcome-uncertain");
  upstream_.always(Play().answer(201, "made"));
  EXPECT_EQ(send_as("globex", "K2").status, 201);
}

TEST_F(Quotas, OfWaitersKeepOneCallerFromFillingTheQueue) {
  operation().in_flight = InFlight::wait;
  operation().wait = std::chrono::seconds(60);
  config_.limits.waiters_per_caller = 2;
  start();
  const auto gate = std::make_shared<Gate>();
  upstream_.always(Play().wait(gate).answer(201, "made"));
  std::vector<std::unique_ptr<RawClient>> originals;
  for (const auto* key : {"K0", "K1", "K2"}) {
    originals.push_back(std::make_unique<RawClient>(gateway_->port()));
    originals.back()->send(order(key));
  }
  ASSERT_TRUE(upstream_.wait_for(3));
  std::atomic<int> refused = 0, heard = 0;
  std::vector<std::thread> waiters;
  for (const auto* key : {"K0", "K1", "K2"}) {
    waiters.emplace_back([&, key] {
      const auto answer = send_order(key);
      if (answer.status == 429 && answer.member("reason") == "quota") ++refused;
      if (answer.body == "made") ++heard;
    });
  }
  EXPECT_TRUE(eventually([&] { return refused == 1; }));
  gate->open();
  for (auto& waiter : waiters) waiter.join();
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(heard, 2);
}

class Dialects : public GatewayTest {};

TEST_F(Dialects, StripesSays400ToAnotherBodyAndSpeaksOfErrorsAsItsClientsReadThem) {
  config_.dialect = Dialect::stripe;
  start();
  const auto first = send_order("K1");
  EXPECT_EQ(first.status, 201);
  const auto mismatch = send_order("K1", R"({"amount":11})");
  EXPECT_EQ(mismatch.status, 400);
  EXPECT_EQ(mismatch.header("Content-Type"), "application/json");
  EXPECT_NE(mismatch.body.find(R"("type":"idempotency_error")"), std::string::npos);
  const auto replay = send_order("K1");
  EXPECT_EQ(replay.body, first.body);
  EXPECT_EQ(replay.header("Idempotent-Replayed"), "true");

  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "made"));
  RawClient original(gateway_->port());
  original.send(order("K2"));
  EXPECT_TRUE(upstream_.wait_for(2));
  const auto in_use = send_order("K2");
  EXPECT_EQ(in_use.status, 409);
  EXPECT_NE(in_use.body.find(R"("code":"idempotency_key_in_use")"), std::string::npos);
  gate->open();
  EXPECT_EQ(original.read_answer().body, "made");
}

TEST_F(Dialects, OfKeyHeadersAreAnyOfTheConfiguredOnesAndNameTheSameKey) {
  operation().key.aliases = {"X-Idempotency-Key", "PayPal-Request-Id"};
  start();
  std::vector<std::string> bodies;
  for (const auto* name : {"Idempotency-Key", "X-Idempotency-Key", "PayPal-Request-Id"}) {
    auto request = order("");
    request.headers.emplace_back(name, "K1");
    const auto answer = send(request);
    EXPECT_EQ(answer.status, 201) << name;
    bodies.push_back(answer.body);
  }
  EXPECT_EQ(bodies[0], bodies[1]);
  EXPECT_EQ(bodies[0], bodies[2]);
  auto two = order("K1");
  two.headers.emplace_back("PayPal-Request-Id", "K2");
  EXPECT_EQ(send(two).member("reason"), "key-invalid");
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(Dialects, OfTombstonesSayGoneWithoutTheBody) {
  operation().policies.retention = std::chrono::milliseconds(200);
  operation().policies.after_expiry = AfterExpiry::refuse;
  operation().policies.tombstone = std::chrono::hours(1);
  start();
  EXPECT_EQ(send_order("K1").status, 201);
  HttpAnswer gone;
  EXPECT_TRUE(eventually([&] {
    gone = send_order("K1");
    return gone.status == 410;
  }));
  EXPECT_EQ(gone.member("reason"), "key-expired");
  EXPECT_EQ(gone.member("retryable"), "false");
  EXPECT_EQ(send_order("K1", R"({"amount":11})").member("reason"), "key-reused");
  EXPECT_EQ(upstream_.count(), 1U);
}

class OperationPolicy : public GatewayTest {};

TEST_F(OperationPolicy, GivesTheSameResourceToTheFirstAndEveryLaterRequest) {
  operation().in_flight = InFlight::operation;
  start();
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "made"));
  const auto first = send_order("K1");
  EXPECT_EQ(first.status, 202);
  EXPECT_EQ(first.header("Cache-Control"), "no-store");
  const auto resource = first.header("Location");
  const auto second = send_order("K1");
  EXPECT_EQ(second.status, 202);
  EXPECT_EQ(second.header("Location"), resource);
  EXPECT_EQ(send_order("K1", R"({"amount":11})").member("reason"), "key-reused");
  gate->open();
  const auto get = [&](const std::string& target) {
    return HttpClient(gateway_->port()).get(target, {{"X-Caller", "acme"}});
  };
  EXPECT_TRUE(eventually([&] { return get(resource).member("state") == "completed"; }));
  const auto settled = send_order("K1");
  EXPECT_EQ(settled.status, 202) << "also after settlement";
  EXPECT_EQ(settled.header("Location"), resource);
  EXPECT_EQ(get(resource + "/result").body, "made");
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(OperationPolicy, ShowsAnUnknownOutcomeAsSuch) {
  operation().in_flight = InFlight::operation;
  start();
  upstream_.next(Play().reset());
  const auto resource = send_order("K1").header("Location");
  const auto get = [&](const std::string& target) {
    return HttpClient(gateway_->port()).get(target, {{"X-Caller", "acme"}});
  };
  EXPECT_TRUE(eventually([&] { return get(resource).member("state") == "uncertain"; }));
  EXPECT_EQ(get(resource + "/result").member("reason"), "outcome-uncertain");
}

}  // namespace
}  // namespace einmal::test
