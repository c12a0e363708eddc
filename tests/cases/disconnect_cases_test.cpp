#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>
#include <memory>
#include <string>

#include "einmal/testing/tcp_gate.hpp"
#include "support/gateway.hpp"

/// Field case C19 (the caller hangs up) beyond window 5, and the drain of a stopping gateway.

namespace einmal::test {
namespace {

using ::testing::AnyOf;

class Disconnects : public GatewayTest {};

TEST_F(Disconnects, in_the_middle_of_the_request_body_leave_no_claim_and_forward_nothing) {
  open();
  for (const bool reset : {false, true}) {
    RawClient client(gateway_->port());
    client.send("POST /orders HTTP/1.1\r\nHost: a\r\nX-Caller: alice\r\nIdempotency-Key: K" +
                std::to_string(reset) + "\r\nContent-Length: 1000\r\n\r\n" + std::string(500, 'x'));
    reset ? client.reset() : client.close();
  }
  for (const auto* key : {"K0", "K1"})
    EXPECT_EQ(in_words(send(order(key, std::string(1000, 'x')))), "201 executed");
  EXPECT_EQ(upstream_.begun(), 2u);
}

TEST_F(Disconnects, in_a_chunked_body_are_no_end_of_it) {
  open();
  {
    RawClient client(gateway_->port());
    client.send(
        "POST /orders HTTP/1.1\r\nHost: a\r\nX-Caller: alice\r\nIdempotency-Key: K\r\n"
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    client.half_close();
    EXPECT_THAT(client.read_answer().status, AnyOf(0, 400));
  }
  EXPECT_EQ(upstream_.begun(), 0u);
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
}

TEST_F(Disconnects, without_a_word_on_the_network_change_nothing) {
  open();
  TcpGate network(gateway_->port());
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "done"));
  RawClient client(network.port());
  client.send(order("K"));
  ASSERT_TRUE(upstream_.wait_for(1));
  network.stall(true);
  gate->open();
  const auto replay = send_until_decided(order("K"));
  EXPECT_EQ(in_words(replay), "201 replayed");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

TEST_F(Disconnects, of_a_slow_reader_hold_nothing_that_others_need) {
  open();
  const std::string body(900'000, 'b');
  upstream_.next(Play().answer(201, body));
  RawClient slow(gateway_->port(), 4096);
  slow.send(order("K"));
  EXPECT_EQ(slow.read_some(patience, 1).kind, Incoming::Kind::data);
  // Its answer is still on the way; the record is final and other requests run.
  const auto replay = send_until_decided(order("K"));
  EXPECT_EQ(in_words(replay), "201 replayed");
  EXPECT_EQ(replay.body, body);
  EXPECT_EQ(in_words(send(order("other"))), "201 executed");
}

class Stopping : public GatewayTest {};

TEST_F(Stopping, lets_the_running_execution_finish_and_exits_cleanly) {
  open();
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "done"));
  auto owner = std::async(std::launch::async, [&] { return send(order("K")); });
  ASSERT_TRUE(upstream_.wait_for(1));
  gateway_->process().signal(SIGTERM);
  // It listens no more.
  EXPECT_TRUE(eventually([&] {
    try {
      RawClient probe(gateway_->port());
      return false;
    } catch (const std::exception&) {
      return true;
    }
  }));
  EXPECT_TRUE(gateway_->process().is_running());
  gate->open();
  EXPECT_EQ(in_words(owner.get()), "201 executed");
  EXPECT_EQ(gateway_->process().wait_for_exit(), (Exit{0, 0}));
  gateway_->restart();
  EXPECT_EQ(in_words(send(order("K"))), "201 replayed");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

TEST_F(Stopping, marks_what_did_not_finish_in_time_uncertain_at_once) {
  open({.gateway = "drain = \"300ms\"\n"});
  upstream_.next(Play().stall());
  auto owner = std::async(std::launch::async, [&] { return send(order("K")); });
  ASSERT_TRUE(upstream_.wait_for(1));
  gateway_->process().signal(SIGTERM);
  EXPECT_EQ(gateway_->process().wait_for_exit(), (Exit{0, 0}));
  EXPECT_THAT(in_words(owner.get()), AnyOf("504 uncertain outcome-uncertain", "0 (broken off)"));
  gateway_->restart();
  // No lease has to run out first.
  EXPECT_EQ(in_words(send(order("K"))), "504 uncertain outcome-uncertain");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

TEST_F(Stopping, told_twice_exits_at_once_and_time_alone_runs_nothing_again) {
  open({.defaults = "lease = \"1s\"\n"});
  upstream_.next(Play().stall());
  RawClient client(gateway_->port());
  client.send(order("K"));
  ASSERT_TRUE(upstream_.wait_for(1));
  gateway_->process().signal(SIGTERM);
  EXPECT_TRUE(gateway_->process().is_running());
  ASSERT_TRUE(eventually([&] {
    gateway_->process().signal(SIGTERM);
    return !gateway_->process().is_running();
  }));
  gateway_->restart();
  EXPECT_EQ(in_words(send_until_decided(order("K"))), "504 uncertain outcome-uncertain");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

TEST_F(Stopping, refuses_new_keyed_requests_on_open_connections_as_draining) {
  open();
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201));
  RawClient idle(gateway_->port());
  idle.send(order("before"));
  ASSERT_TRUE(upstream_.wait_for(1));
  RawClient open_connection(gateway_->port());
  // Known to the gateway, not only to its kernel: it has served a request.
  open_connection.send(order("warm"));
  EXPECT_EQ(in_words(open_connection.read_answer()), "201 executed");
  gateway_->process().signal(SIGTERM);
  EXPECT_TRUE(eventually([&] {
    try {
      RawClient probe(gateway_->port());
      return false;
    } catch (const std::exception&) {
      return true;
    }
  }));
  open_connection.send(order("new"));
  const auto answer = open_connection.read_answer();
  // Closed at once where it was idle, or told.
  EXPECT_THAT(in_words(answer), AnyOf("503 rejected draining", "0 (broken off)"));
  gate->open();
  EXPECT_EQ(in_words(idle.read_answer()), "201 executed");
  EXPECT_EQ(gateway_->process().wait_for_exit(), (Exit{0, 0}));
  EXPECT_EQ(upstream_.count(), 2u);
}

}  // namespace
}  // namespace einmal::test
