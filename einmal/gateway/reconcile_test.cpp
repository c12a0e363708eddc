#include <fstream>

#include "einmal/gateway/gateway_fixture.hpp"
#include "einmal/gateway/reconcile_mapping.hpp"

/// Unknown outcomes that the gateway finds out by asking the upstream.

namespace einmal::test {
namespace {

using gateway::SmallAnswer;
using std::chrono::milliseconds;

class Reconciling : public GatewayTest {
 protected:
  Reconciling() {
    operation().reconcile = ReconcileConfig{};
    auto& table = *operation().reconcile;
    table.request = "GET /orders?key={key}&of={caller}";
    table.completed = {"200 /orders/0"};
    table.failed = {"200 /state = \"declined\""};
    table.failed_status = 402;
    table.absent = {"200 /orders = []", "404"};
    table.status = 201;
    operation().quiescence = milliseconds(1);
  }
  ReconcileConfig& table() { return *operation().reconcile; }

  /// POSTs vanish after they arrived; questions are answered so.
  void upstream_says(int status, const std::string& body) {
    upstream_.always([=](const HttpRequest& request, std::size_t) {
      if (request.method == "POST") return Play().reset();
      return Play().answer(status, body, {{"Content-Type", "application/json"}});
    });
  }
  /// Sends again until the answer is another than outcome-uncertain.
  HttpAnswer decided(const std::string& key) {
    HttpAnswer answer;
    EXPECT_TRUE(eventually([&] {
      answer = send_order(key);
      return answer.status != 504;
    })) << answer.body;
    return answer;
  }
  std::size_t posts() const {
    std::size_t count = 0;
    for (const auto& request : upstream_.requests()) count += request.method == "POST" ? 1 : 0;
    return count;
  }
};

TEST_F(Reconciling, WhatTheUpstreamDidIsReplayedAndNeverSentAgain) {
  table().result = "/orders/0";
  table().location = "/orders/{/id}";
  start();
  upstream_says(200, R"({"orders":[{"id":"a b","amount":10}]})");
  const auto unknown = send_order("K 1");
  EXPECT_EQ(unknown.member("reason"), "key-invalid");
  const auto first = send_order("K/1");
  EXPECT_EQ(first.member("reason"), "outcome-uncertain");
  EXPECT_FALSE(first.header("Retry-After").empty()) << "a reconciler works on it";
  const auto answer = decided("K/1");
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.header("Idempotency-Status"), "resolved");
  EXPECT_EQ(answer.header("Idempotent-Replayed"), "true");
  EXPECT_EQ(answer.header("Location"), "/orders/a%20b");
  EXPECT_EQ(answer.header("Content-Type"), "application/json");
  EXPECT_EQ(answer.body, R"({"id":"a b","amount":10})");
  EXPECT_EQ(posts(), 1U);
  const auto asked = upstream_.requests().back();
  EXPECT_EQ(asked.target, "/orders?key=K%2F1&of=acme");
}

TEST_F(Reconciling, WhatTheUpstreamRefusedIsARefusal) {
  start();
  upstream_says(200, R"({"state":"declined"})");
  send_order("K1");
  const auto answer = decided("K1");
  EXPECT_EQ(answer.status, 402);
  EXPECT_EQ(answer.header("Idempotency-Status"), "resolved");
  EXPECT_EQ(answer.body, R"({"state":"declined"})");
  EXPECT_EQ(posts(), 1U);
}

TEST_F(Reconciling, WhatIsNotThereAfterQuiescenceFreesTheKey) {
  operation().quiescence = std::chrono::seconds(2);
  start();
  upstream_says(404, "{}");
  send_order("K1");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(eventually([&] {
    if (upstream_.count() < 2) return false;  // It has been asked at least once.
    upstream_says(404, "{}");
    const auto answer = send_order("K1");
    return posts() == 2;
  }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1900));
}

TEST_F(Reconciling, WhatMeansNothingOrTwoThingsLeavesItUncertain) {
  table().completed.emplace_back("200 /both");
  start();
  std::size_t said = 0;
  const std::vector<std::pair<int, std::string>> unclear = {
      {500, "{}"}, {200, "no json"}, {200, R"({"orders":[],"both":1})"}, {200, "{}"}};
  upstream_.always([&](const HttpRequest& request, std::size_t) {
    if (request.method == "POST") return Play().reset();
    const auto& [status, body] = unclear[said++ % unclear.size()];
    return Play().answer(status, body);
  });
  send_order("K1");
  EXPECT_TRUE(eventually([&] { return upstream_.count() >= 3; }));
  EXPECT_EQ(send_order("K1").member("reason"), "outcome-uncertain");
  EXPECT_EQ(posts(), 1U);
}

TEST_F(Reconciling, GoesOnAfterARestart) {
  start();
  upstream_says(500, "");
  send_order("K1");
  stop();
  upstream_says(200, R"({"orders":[{"id":1}]})");
  start();
  EXPECT_EQ(decided("K1").status, 201);
  EXPECT_EQ(posts(), 1U);
}

TEST_F(Reconciling, AsksWithTheKeyThatTheUpstreamGotAndWithItsOwnCredentials) {
  operation().upstream_key = UpstreamKey::derived;
  table().credentials = directory_.file("credentials");
  std::ofstream(table().credentials) << "# ours\nAuthorization: Bearer gateway\n\n";
  start();
  upstream_says(200, R"({"orders":[{"id":1}]})");
  auto request = order("K1");
  request.headers.emplace_back("Authorization", "Bearer client");
  EXPECT_EQ(send(request).status, 504);
  EXPECT_TRUE(eventually([&] { return upstream_.count() >= 2; }));
  const auto post = upstream_.requests().front();
  const auto asked = upstream_.requests().back();
  EXPECT_EQ(asked.header("Authorization"), "Bearer gateway");
  EXPECT_EQ(asked.target, "/orders?key=" + post.header("Idempotency-Key") + "&of=acme");
}

TEST_F(Reconciling, AnOutcomeWithoutReconcilerIsForAPerson) {
  operation().reconcile.reset();
  operation().quiescence.reset();
  start();
  upstream_says(200, R"({"orders":[{"id":1}]})");
  const auto answer = send_order("K1");
  EXPECT_EQ(answer.member("reason"), "outcome-uncertain");
  EXPECT_EQ(answer.header("Retry-After"), "");
}

SmallAnswer said(int status, std::string body) {
  SmallAnswer answer;
  answer.head.status = status;
  answer.head.headers.add("Content-Type", "application/json");
  answer.body = std::move(body);
  return answer;
}

TEST(ReconcileMappings, CompareNumbersByValueAndTextsExactly) {
  OperationConfig operation;
  operation.reconcile = ReconcileConfig{};
  operation.reconcile->request = "GET /a/{operation-id}";
  operation.reconcile->completed = {"200 /n = 1.50", "200 /t = \"a\\u0062\"", "204"};
  const auto mapping = gateway::ReconcileMapping::make(operation);
  ASSERT_TRUE(mapping) << mapping.error().message;
  const auto completes = [&](const SmallAnswer& answer) {
    return std::holds_alternative<finding::Completed>(mapping->judge(answer).what);
  };
  EXPECT_TRUE(completes(said(200, R"({"n":15e-1})")));
  EXPECT_TRUE(completes(said(200, R"({"t":"ab"})")));
  EXPECT_TRUE(completes(said(204, "")));
  EXPECT_FALSE(completes(said(200, R"({"n":"1.50"})")));
  EXPECT_FALSE(completes(said(201, R"({"n":1.5})")));
  EXPECT_FALSE(completes(said(200, R"({"t":"AB"})")));
  EXPECT_FALSE(completes(said(200, "{")));
}

TEST(ReconcileMappings, NeedTheResultWhereItShouldBe) {
  OperationConfig operation;
  operation.max_stored_body = 20;
  operation.reconcile = ReconcileConfig{};
  operation.reconcile->request = "GET /a/{key}";
  operation.reconcile->completed = {"200"};
  operation.reconcile->result = "/order";
  operation.reconcile->location = "/orders/{/id}";
  const auto mapping = gateway::ReconcileMapping::make(operation);
  ASSERT_TRUE(mapping);
  EXPECT_TRUE(std::holds_alternative<finding::Unknown>(mapping->judge(said(200, "{}")).what));
  EXPECT_TRUE(
      std::holds_alternative<finding::Unknown>(mapping->judge(said(200, R"({"order":{}})")).what));
  const auto large = mapping->judge(said(200, R"({"order":{"id":7,"t":"xxxxxxxxxxxxxxxxxxxxx"}})"));
  const auto& result = std::get<finding::Completed>(large.what).result;
  EXPECT_EQ(result.body_kept, BodyKept::too_large);
  EXPECT_EQ(result.resource_id, "/orders/7");
}

TEST(ReconcileMappings, NameTheFileAndLineOfCredentialsAndNothingOfThem) {
  const TemporaryDirectory directory;
  OperationConfig operation;
  operation.reconcile = ReconcileConfig{};
  operation.reconcile->request = "GET /a/{key}";
  operation.reconcile->completed = {"200"};
  operation.reconcile->credentials = directory.file("c");
  std::ofstream(directory.file("c")) << "X-Token: good\nsecret without a colon\n";
  const auto mapping = gateway::ReconcileMapping::make(operation);
  ASSERT_FALSE(mapping);
  EXPECT_NE(mapping.error().message.find("c:2"), std::string::npos) << mapping.error().message;
  EXPECT_EQ(mapping.error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace einmal::test
