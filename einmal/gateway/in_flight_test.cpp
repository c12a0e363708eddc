#include "einmal/gateway/gateway_fixture.hpp"

/// Duplicates while the original runs, clients that leave, and the end of the gateway.

namespace einmal::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class InFlightRequests : public GatewayTest {
 protected:
  /// Sends an order whose answer the upstream holds back until `gate_` opens.
  RawClient& begin_order(const std::string& key) {
    upstream_.next(Play().wait(gate_).answer(201, "made"));
    const auto begun = upstream_.count();
    clients_.push_back(std::make_unique<RawClient>(gateway_->port()));
    clients_.back()->send(order(key));
    EXPECT_TRUE(upstream_.wait_for(begun + 1));
    return *clients_.back();
  }

  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::vector<std::unique_ptr<RawClient>> clients_;
};

TEST_F(InFlightRequests, AreRejectedWithAHintWhileTheOriginalRuns) {
  start();
  auto& original = begin_order("K1");
  const auto duplicate = send_order("K1");
  EXPECT_EQ(duplicate.status, 409);
  EXPECT_EQ(duplicate.member("reason"), "in-progress");
  EXPECT_EQ(duplicate.header("Idempotency-Status"), "in-progress");
  EXPECT_FALSE(duplicate.header("Retry-After").empty());
  EXPECT_EQ(send_order("K1", "{}").member("reason"), "key-reused");
  gate_->open();
  EXPECT_EQ(original.read_answer().body, "made");
  EXPECT_EQ(send_order("K1").header("Idempotency-Status"), "replayed");
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(InFlightRequests, WaitForTheOriginalWhereTheOperationSaysSo) {
  operation().in_flight = InFlight::wait;
  operation().wait = seconds(30);
  start();
  auto& original = begin_order("K1");
  RawClient waiter(gateway_->port());
  waiter.send(order("K1"));
  gate_->open();
  EXPECT_EQ(original.read_answer().header("Idempotency-Status"), "executed");
  const auto replay = waiter.read_answer();
  EXPECT_EQ(replay.body, "made");
  EXPECT_EQ(replay.header("Idempotency-Status"), "replayed");
}

TEST_F(InFlightRequests, WaitNoLongerThanTheyAskFor) {
  operation().wait = seconds(30);
  start();
  begin_order("K1");
  auto impatient = order("K1");
  impatient.headers.emplace_back("Prefer", "wait=1");
  const auto answer = send(impatient);
  EXPECT_EQ(answer.member("reason"), "in-progress");
  gate_->open();
}

TEST_F(InFlightRequests, PlacesOfWaitersThatLeftAreFree) {
  operation().in_flight = InFlight::wait;
  operation().wait = seconds(30);
  config_.limits.waiters_per_key = 1;
  start();
  begin_order("K1");
  for (const bool by_reset : {false, true}) {
    RawClient waiter(gateway_->port());
    waiter.send(order("K1"));
    EXPECT_TRUE(
        eventually([&] { return send_order("K1").member("reason") == "too-many-waiters"; }));
    by_reset ? waiter.reset() : waiter.half_close();
    // Its place is free as soon as somebody else waits in it: that one hears of the end.
    RawClient next(gateway_->port());
    EXPECT_TRUE(eventually([&] {
      next.send(order("K1"));
      return next.read_some(milliseconds(200)).kind == Incoming::Kind::timeout;
    }));
    next.reset();
  }
  gate_->open();
}

TEST_F(InFlightRequests, GetTheOperationResourceWhereTheyAskForIt) {
  start();
  auto asynchronous = order("K1");
  asynchronous.headers.emplace_back("Prefer", "respond-async");
  upstream_.next(Play().wait(gate_).answer(201, "made", {{"Location", "/orders/1"}}));
  const auto accepted = send(asynchronous);
  EXPECT_EQ(accepted.status, 202);
  EXPECT_EQ(accepted.header("Preference-Applied"), "respond-async");
  const auto resource = accepted.header("Location");
  EXPECT_EQ(send(asynchronous).header("Location"), resource);

  const auto get = [&](const std::string& target, const std::string& caller) {
    return HttpClient(gateway_->port()).get(target, {{"X-Caller", caller}});
  };
  const auto running = get(resource, "acme");
  EXPECT_EQ(running.status, 200);
  EXPECT_EQ(running.member("state"), "processing");
  EXPECT_FALSE(running.header("Retry-After").empty());
  EXPECT_EQ(get(resource + "/result", "acme").status, 409);
  EXPECT_EQ(get(resource, "globex").status, 404);
  EXPECT_EQ(get(resource + "x", "acme").status, 404);
  gate_->open();
  EXPECT_TRUE(eventually([&] { return get(resource, "acme").member("state") == "completed"; }));
  const auto result = get(resource + "/result", "acme");
  EXPECT_EQ(result.status, 201);
  EXPECT_EQ(result.body, "made");
  EXPECT_EQ(result.header("Location"), "/orders/1");
  EXPECT_EQ(send(asynchronous).status, 202);
  auto post = order("");
  post.target = resource;
  EXPECT_EQ(send(post).status, 405);
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(InFlightRequests, FinishAlthoughTheirClientHasLeft) {
  start();
  begin_order("closed").close();
  begin_order("reset").reset();
  EXPECT_EQ(send_order("closed").member("reason"), "in-progress");
  gate_->open();
  for (const auto* key : {"closed", "reset"}) {
    EXPECT_TRUE(eventually([&] { return send_order(key).status == 201; })) << key;
    EXPECT_EQ(upstream_.effects(key), 1U);
  }
}

TEST_F(InFlightRequests, AreAnsweredToAClientThatHasClosedItsOwnDirection) {
  start();
  auto& client = begin_order("K1");
  client.half_close();
  gate_->open();
  EXPECT_EQ(client.read_answer().body, "made");
}

TEST_F(InFlightRequests, AreFinishedAndAnsweredWhenTheGatewayStops) {
  start();
  auto& client = begin_order("K1");
  RawClient idle(gateway_->port());
  idle.send(order("before"));
  EXPECT_EQ(idle.read_answer().status, 201);
  gateway_->begin_drain();
  EXPECT_TRUE(eventually([&] {
    idle.send(order("after"));
    return idle.read_answer().member("reason") == "draining";
  }));
  gate_->open();
  const auto answer = client.read_answer();
  EXPECT_EQ(answer.body, "made");
  EXPECT_EQ(answer.header("Connection"), "close");
  thread_.join();
}

TEST_F(InFlightRequests, ThatOutliveTheDrainAreUncertain) {
  config_.drain = milliseconds(100);
  start();
  begin_order("K1");
  drain();
  gateway_.reset();
  store_.reset();
  start();
  gate_->open();
  EXPECT_EQ(send_order("K1").member("reason"), "outcome-uncertain");
  EXPECT_EQ(upstream_.effects("K1"), 1U);
}

TEST_F(InFlightRequests, KeepWhatTheyBeganWithWhenTheConfigurationChanges) {
  start();
  auto& original = begin_order("K1");
  auto changed = config_;
  changed.operations.front().match.path = "/bookings";
  EXPECT_TRUE(gateway_->reload(changed));
  EXPECT_EQ(send_order("K2").header("Idempotency-Status"), "");
  auto bad = config_;
  bad.operations.front().match.path = "bookings";
  EXPECT_FALSE(gateway_->reload(bad));
  gate_->open();
  EXPECT_EQ(original.read_answer().header("Idempotency-Status"), "executed");
}

}  // namespace
}  // namespace einmal::test
