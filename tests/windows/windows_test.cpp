#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>

#include "einmal/testing/tcp_gate.hpp"
#include "support/gateway.hpp"

/// The uncertainty windows, each forced on real processes and a real SQLite file. Effects are
/// counted by the upstream, outside einmal. Windows 3 and 4 at named points are in crash/.

namespace einmal::test {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::Not;

constexpr auto waiting = "in_flight = \"wait\"\nwait = \"20s\"\n";

/// How often each answer came.
std::map<std::string, std::size_t> tally(const std::vector<HttpAnswer>& answers) {
  std::map<std::string, std::size_t> counts;
  for (const auto& answer : answers) ++counts[in_words(answer)];
  return counts;
}

// Window 1: the same key at once.

class SameKeyAtOnce : public GatewayTest, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(SameKeyAtOnce, one_executes_and_everybody_waiting_gets_its_bytes) {
  open({.limits = "waiters_per_key = 256\n", .defaults = waiting});
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "{\"id\":\"one\"}"));
  auto all = std::async(std::launch::async, [&] { return send_at_once(order("K"), GetParam()); });
  ASSERT_TRUE(upstream_.wait_for(1));
  gate->open();
  const auto answers = all.get();
  const auto counts = tally(answers);
  EXPECT_EQ(counts.at("201 executed"), 1u);
  EXPECT_EQ(counts.at("201 replayed"), GetParam() - 1);
  for (const auto& answer : answers) EXPECT_EQ(answer.body, "{\"id\":\"one\"}");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

TEST_P(SameKeyAtOnce, one_executes_and_nobody_is_told_success_before_it_is_over) {
  open();
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201));
  auto owner = std::async(std::launch::async, [&] { return send(order("K")); });
  ASSERT_TRUE(upstream_.wait_for(1));
  for (const auto& answer : send_at_once(order("K"), GetParam())) {
    EXPECT_EQ(in_words(answer), "409 in-progress in-progress");
    EXPECT_NE(answer.header("Retry-After"), "");
  }
  gate->open();
  EXPECT_EQ(in_words(owner.get()), "201 executed");
  EXPECT_EQ(in_words(send(order("K"))), "201 replayed");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

TEST_P(SameKeyAtOnce, one_executes_behind_three_gateways_on_one_store) {
  open({.limits = "waiters_per_key = 256\n", .defaults = waiting});
  const auto second = another();
  const auto third = another();
  const auto gate = std::make_shared<Gate>();
  upstream_.always(Play().wait(gate).answer(201, "{\"id\":\"one\"}"));
  auto all = std::async(std::launch::async, [&] {
    return send_at_once(order("K"), GetParam(), {gateway_->port(), second->port(), third->port()});
  });
  ASSERT_TRUE(upstream_.wait_for(1));
  gate->open();
  const auto answers = all.get();
  const auto counts = tally(answers);
  EXPECT_EQ(counts.at("201 executed"), 1u);
  for (const auto& answer : answers) EXPECT_EQ(answer.body, "{\"id\":\"one\"}") << in_words(answer);
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

INSTANTIATE_TEST_SUITE_P(Clients, SameKeyAtOnce, ::testing::Values(2, 16, 200));

// Window 2: the same key, another payload.

class OtherPayload : public GatewayTest {
 protected:
  void expect_refused() const {
    EXPECT_EQ(in_words(send(order("K", R"({"sku":"A-1","qty":2})"))), "422 mismatch key-reused");
  }
};

TEST_F(OtherPayload, is_refused_while_the_first_is_processing) {
  open();
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "first"));
  auto owner = std::async(std::launch::async, [&] { return send(order("K")); });
  ASSERT_TRUE(upstream_.wait_for(1));
  expect_refused();
  gate->open();
  EXPECT_EQ(in_words(owner.get()), "201 executed");
  EXPECT_EQ(upstream_.count(), 1u);
}

TEST_F(OtherPayload, is_refused_after_completion_and_after_a_restart_and_the_first_stays) {
  open();
  upstream_.next(Play().answer(201, "first"));
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  expect_refused();
  gateway_->kill();
  gateway_->restart();
  expect_refused();
  const auto replay = send(order("K"));
  EXPECT_EQ(in_words(replay), "201 replayed");
  EXPECT_EQ(replay.body, "first");
  EXPECT_EQ(upstream_.count(), 1u);
}

TEST_F(OtherPayload, is_refused_while_the_outcome_is_uncertain) {
  open();
  upstream_.next(Play().reset());
  EXPECT_EQ(in_words(send(order("K"))), "504 uncertain outcome-uncertain");
  expect_refused();
  EXPECT_EQ(in_words(send(order("K"))), "504 uncertain outcome-uncertain");
  EXPECT_EQ(upstream_.count(), 1u);
}

TEST_F(OtherPayload, is_refused_on_a_waiting_operation_at_once) {
  open({.defaults = waiting});
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201));
  auto owner = std::async(std::launch::async, [&] { return send(order("K")); });
  ASSERT_TRUE(upstream_.wait_for(1));
  expect_refused();
  gate->open();
  EXPECT_EQ(in_words(owner.get()), "201 executed");
}

// Window 3: committed, the answer is lost on its way to the client.

class AnswerLost : public GatewayTest {};

TEST_F(AnswerLost, cut_after_any_number_of_its_bytes_it_is_replayed_whole) {
  open();
  TcpGate network(gateway_->port());
  const std::string body(3000, 'b');
  for (const std::size_t cut : {1u, 17u, 200u, 1500u, 3000u}) {
    const auto key = "K" + std::to_string(cut);
    upstream_.next(Play().answer(201, body, {{"Location", "/orders/1"}}));
    network.cut_to_client_after(cut);
    const auto broken = HttpClient(network.port()).send(order(key));
    EXPECT_FALSE(broken.is_whole());
    network.cut_to_client_after(std::nullopt);
    const auto whole = HttpClient(network.port()).send(order(key));
    EXPECT_EQ(in_words(whole), "201 replayed");
    EXPECT_EQ(whole.body, body);
    EXPECT_EQ(whole.header("Location"), "/orders/1");
    EXPECT_EQ(upstream_.effects(key), 1u);
  }
}

// Window 5: the client gives up while the server finishes.

class ClientGivesUp : public GatewayTest {
 protected:
  /// Sends an order, leaves by `leave` while the upstream works, and expects that the work is
  /// finished and recorded all the same.
  template <class Leave>
  void expect_finished_after(std::string key, Leave leave) {
    const auto gate = std::make_shared<Gate>();
    upstream_.next(Play().wait(gate).answer(201, "done"));
    const auto before = upstream_.count();
    RawClient client(gateway_->port());
    client.send(order(key));
    ASSERT_TRUE(upstream_.wait_for(before + 1));
    leave(client);
    EXPECT_EQ(in_words(send(order(key))), "409 in-progress in-progress");
    gate->open();
    const auto replay = send_until_decided(order(key));
    EXPECT_EQ(in_words(replay), "201 replayed");
    EXPECT_EQ(replay.body, "done");
    EXPECT_EQ(upstream_.effects(key), 1u);
  }
};

TEST_F(ClientGivesUp, by_closing_resetting_or_silence_and_the_operation_is_recorded) {
  open();
  expect_finished_after("closed", [](RawClient& client) { client.close(); });
  expect_finished_after("reset", [](RawClient& client) { client.reset(); });
  expect_finished_after("half-closed", [](RawClient& client) { client.half_close(); });
  expect_finished_after("silent", [](RawClient&) {});
}

TEST_F(ClientGivesUp, half_closed_it_still_gets_its_answer) {
  open();
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "done"));
  RawClient client(gateway_->port());
  client.send(order("K"));
  client.half_close();
  ASSERT_TRUE(upstream_.wait_for(1));
  gate->open();
  EXPECT_EQ(in_words(client.read_answer()), "201 executed");
}

TEST_F(ClientGivesUp, two_hundred_at_once_and_each_operation_is_recorded_once) {
  open();
  const auto gate = std::make_shared<Gate>();
  upstream_.always(Play().wait(gate).answer(201));
  {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 200; ++i) {
      clients.push_back(std::make_unique<RawClient>(gateway_->port()));
      clients.back()->send(order("K" + std::to_string(i)));
    }
    ASSERT_TRUE(upstream_.wait_for(200));
    for (std::size_t i = 0; i < clients.size(); i += 2) clients[i]->reset();
  }
  gate->open();
  for (int i = 0; i < 200; ++i) {
    const auto key = "K" + std::to_string(i);
    EXPECT_EQ(in_words(send_until_decided(order(key))), "201 replayed");
    EXPECT_EQ(upstream_.effects(key), 1u);
  }
}

// Window 8: a key expires and returns.

class KeyReturns : public GatewayTest {};

TEST_F(KeyReturns, replayed_within_retention_and_executed_once_more_after_it) {
  open({.defaults = "retention = \"2s\"\n"});
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  const auto settled = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] {
    const auto answer = send(order("K"));
    EXPECT_THAT(in_words(answer), AnyOf("201 replayed", "201 executed"));
    return status_of(answer) == "executed";
  }));
  // The answer left after the record was settled, so this is the least that can have passed.
  EXPECT_GE(std::chrono::steady_clock::now() - settled + Milliseconds(50), Milliseconds(2000));
  EXPECT_EQ(upstream_.effects("K"), 2u);
  EXPECT_EQ(in_words(send(order("K"))), "201 replayed");
}

TEST_F(KeyReturns, twenty_at_once_after_retention_make_one_new_effect) {
  open({.limits = "waiters_per_key = 64\n",
        .defaults = std::string(waiting) + "retention = \"2s\"\n"});
  EXPECT_EQ(in_words(send(order("first"))), "201 executed");
  EXPECT_EQ(in_words(send(order("second"))), "201 executed");
  // When the one that was settled later is expired, the other one is.
  ASSERT_TRUE(eventually([&] { return status_of(send(order("second"))) == "executed"; }));
  const auto counts = tally(send_at_once(order("first"), 20));
  EXPECT_EQ(counts.at("201 executed"), 1u);
  EXPECT_EQ(counts.at("201 replayed"), 19u);
  EXPECT_EQ(upstream_.effects("first"), 2u);
}

TEST_F(KeyReturns, with_another_body_after_retention_it_is_a_new_operation) {
  open({.defaults = "retention = \"1s\"\n"});
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  const auto other = order("K", R"({"sku":"B-2"})");
  HttpAnswer answer;
  ASSERT_TRUE(eventually([&] {
    answer = send(other);
    return answer.status != 422;
  }));
  EXPECT_EQ(in_words(answer), "201 executed");
}

TEST_F(KeyReturns, is_refused_as_gone_where_the_operation_says_refuse) {
  open({.defaults = "retention = \"1s\"\nafter_expiry = \"refuse\"\ntombstone = \"1h\"\n"});
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  HttpAnswer answer;
  ASSERT_TRUE(eventually([&] {
    answer = send(order("K"));
    return answer.status != 201;
  }));
  EXPECT_EQ(in_words(answer), "410 expired key-expired");
  EXPECT_EQ(in_words(send(order("K", "{}"))), "422 mismatch key-reused");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

TEST_F(KeyReturns, a_running_operation_does_not_expire) {
  open({.defaults = "retention = \"1s\"\n"});
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201));
  auto owner = std::async(std::launch::async, [&] { return send(order("slow")); });
  ASSERT_TRUE(upstream_.wait_for(1));
  // Another key lives through a whole retention while the first one runs.
  EXPECT_EQ(in_words(send(order("clock"))), "201 executed");
  ASSERT_TRUE(eventually([&] { return status_of(send(order("clock"))) == "executed"; }));
  EXPECT_EQ(in_words(send(order("slow"))), "409 in-progress in-progress");
  gate->open();
  EXPECT_EQ(in_words(owner.get()), "201 executed");
  EXPECT_EQ(in_words(send(order("slow"))), "201 replayed");
  EXPECT_EQ(upstream_.effects("slow"), 1u);
}

// Window 9: the resource was changed or deleted after the success.

TEST_F(GatewayTest, the_stored_representation_outlives_changes_of_the_resource) {
  open();
  upstream_.next(Play().answer(201, R"({"id":"7","state":"new"})", {{"Location", "/orders/7"}}));
  const auto made = send(order("K"));
  EXPECT_EQ(in_words(made), "201 executed");
  for (const std::string method : {"PUT", "DELETE"}) {
    HttpRequest change;
    change.method = method;
    change.target = "/orders/7";
    change.headers = {{"X-Caller", "alice"}};
    upstream_.next(Play().answer(200, "changed"));
    EXPECT_EQ(send(change).body, "changed");
    const auto replay = send(order("K"));
    EXPECT_EQ(in_words(replay), "201 replayed");
    EXPECT_EQ(replay.body, made.body);
    EXPECT_EQ(replay.header("Location"), "/orders/7");
  }
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

}  // namespace
}  // namespace einmal::test
