#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

#include "einmal/engine/observer.hpp"
#include "support/command.hpp"
#include "support/gateway.hpp"

/// Window 6 and field case C03: a stale owner. Where takeover was chosen, a stopped owner loses the
/// key; whatever it does when it wakes up changes nothing and reaches no client.

namespace einmal::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr auto takeover = "lease = \"1s\"\non_lease_expiry = \"takeover\"\n";
constexpr auto uncertain = "504 uncertain outcome-uncertain";

class StaleOwner : public GatewayTest {
 protected:
  /// A gateway that stops at `point` with an order of key K in its hands, and its client.
  void stop_owner_at(Point point) {
    open({.defaults = takeover});
    upstream_.always([](const HttpRequest&, std::size_t number) {
      return Play().answer(201, "{\"execution\":" + std::to_string(number) + "}");
    });
    owner_ = std::make_unique<GatewayProcess>(directory_.path().string(), gateway_->setup());
    owner_->start({{"EINMAL_STOP_AT", std::string(name(point))}});
    client_ = std::make_unique<RawClient>(owner_->port());
    client_->send(order("K"));
    ASSERT_TRUE(eventually([&] { return owner_->process().is_stopped(); }));
  }
  /// What the first owner's client is told once it is awake again.
  HttpAnswer wake_owner() {
    owner_->process().resume();
    return client_->read_answer();
  }

  static bool has_metric(GatewayProcess& gateway, const std::string& line) {
    const auto on = gateway.process().wait_for_line("metrics on http");
    if (!on) return false;
    const auto port = static_cast<std::uint16_t>(std::stoi(on->substr(on->rfind(':') + 1)));
    const auto page = "\n" + HttpClient(port).get("/metrics").body;
    return page.find("\n" + line + "\n") != std::string::npos;
  }

  std::unique_ptr<GatewayProcess> owner_;
  std::unique_ptr<RawClient> client_;
};

TEST_F(StaleOwner, stopped_before_its_first_byte_sends_nothing_after_a_takeover) {
  stop_owner_at(Point::claim_durable);
  EXPECT_EQ(in_words(send_until_decided(order("K"))), "201 executed");
  const auto late = wake_owner();
  EXPECT_EQ(in_words(late), "201 replayed") << "answered from the record";
  EXPECT_EQ(upstream_.begun(), 1u) << "the late forward did not happen";
  EXPECT_EQ(upstream_.requests()[0].header("Einmal-Fencing-Token"), "2");
}

TEST_F(StaleOwner, stopped_after_sending_publishes_nothing_and_is_told_apart_by_its_token) {
  stop_owner_at(Point::answer_complete);
  const auto taken = send_until_decided(order("K"));
  EXPECT_EQ(in_words(taken), "201 executed");
  EXPECT_EQ(taken.body, "{\"execution\":2}");
  const auto late = wake_owner();
  EXPECT_EQ(in_words(late), "201 replayed");
  EXPECT_EQ(late.body, taken.body) << "the stale result reaches no client";
  EXPECT_EQ(send(order("K")).body, taken.body);
  const auto seen = upstream_.requests();
  ASSERT_EQ(seen.size(), 2u) << "takeover was chosen: two forwards, two tokens, one operation";
  EXPECT_EQ(seen[0].header("Einmal-Fencing-Token"), "1");
  EXPECT_EQ(seen[1].header("Einmal-Fencing-Token"), "2");
  EXPECT_EQ(seen[0].header("Einmal-Operation-Id"), seen[1].header("Einmal-Operation-Id"));
}

/// Field case C03: the late heartbeat, with the next owner still at work.
TEST_F(StaleOwner, that_renews_while_the_next_one_works_is_told_that_it_lost_and_tells_no_success) {
  auto operations = GatewaySetup{}.operations + "upstream_key = \"derived\"\n";
  operations += "[metrics]\nlisten = \"127.0.0.1:0\"\n";
  open({.defaults = takeover, .operations = operations});
  const auto first = std::make_shared<Gate>();
  const auto second = std::make_shared<Gate>();
  upstream_.next(Play().wait(first).answer(201, "A"));
  upstream_.next(Play().wait(second).answer(201, "B"));
  owner_ = std::make_unique<GatewayProcess>(directory_.path().string(), gateway_->setup());
  owner_->start({{"EINMAL_STOP_AT", "request_sent"}});
  client_ = std::make_unique<RawClient>(owner_->port());
  client_->send(order("K"));
  ASSERT_TRUE(eventually([&] { return owner_->process().is_stopped(); }));
  auto next = std::async(std::launch::async, [&] { return send_until_decided(order("K")); });
  ASSERT_TRUE(upstream_.wait_for(2));

  owner_->process().resume();
  EXPECT_TRUE(eventually([&] {
    return has_metric(*owner_, "einmal_renewals_total{result=\"lost\"} 1") &&
           has_metric(*owner_, "einmal_lost_owners_total 1");
  })) << "its handler learns that the key is another's";
  first->open();
  const auto late = client_->read_answer();
  EXPECT_EQ(in_words(late), "409 in-progress in-progress") << "the record as it stands, no success";
  second->open();
  const auto taken = next.get();
  EXPECT_EQ(in_words(taken), "201 executed");
  EXPECT_EQ(taken.body, "B");
  EXPECT_EQ(send(order("K")).body, "B");
  EXPECT_EQ(HttpClient(owner_->port()).send(order("K")).body, "B");
  EXPECT_TRUE(has_metric(*gateway_, "einmal_takeovers_total 1"));

  const auto seen = upstream_.requests();
  ASSERT_EQ(seen.size(), 2u);
  for (const auto* name : {"Einmal-Operation-Id", "Idempotency-Key"}) {
    EXPECT_NE(seen[0].header(name), "") << name;
    EXPECT_EQ(seen[0].header(name), seen[1].header(name)) << name << " names the operation";
  }
  EXPECT_NE(seen[0].header("Einmal-Fencing-Token"), seen[1].header("Einmal-Fencing-Token"));
  const auto shown = run_einmal({"records", "show", "--store", gateway_->store_url(), "--caller",
                                 "alice", "--operation", "create-order", "--key", "K", "--json"});
  EXPECT_THAT(shown.output,
              AllOf(HasSubstr("\"state\":\"completed\""), HasSubstr("\"generation\":2,"),
                    HasSubstr("\"attempts\":2,"), HasSubstr("\"event\":\"taken over\"")));
}

TEST_F(StaleOwner, that_would_release_after_a_takeover_changes_nothing) {
  open({.defaults = takeover});
  upstream_.next(Play().answer(503, "busy", {{"Einmal-Outcome", "released"}}));
  owner_ = std::make_unique<GatewayProcess>(directory_.path().string(), gateway_->setup());
  owner_->start({{"EINMAL_STOP_AT", "answer_complete"}});
  client_ = std::make_unique<RawClient>(owner_->port());
  client_->send(order("K"));
  ASSERT_TRUE(eventually([&] { return owner_->process().is_stopped(); }));
  EXPECT_EQ(in_words(send_until_decided(order("K"))), "201 executed");
  EXPECT_EQ(in_words(wake_owner()), "201 replayed");
  EXPECT_EQ(in_words(send(order("K"))), "201 replayed");
}

TEST_F(StaleOwner, leaves_a_record_that_a_release_of_the_next_owner_cannot_free) {
  stop_owner_at(Point::request_sent);
  ASSERT_TRUE(upstream_.wait_for(1));
  // The second attempt certainly did nothing; of the first one that proves nothing.
  upstream_.next(Play().answer(503, "busy", {{"Einmal-Outcome", "released"}}));
  EXPECT_EQ(in_words(send_until_decided(order("K"))), uncertain);
  owner_->kill();
  EXPECT_EQ(in_words(send(order("K"))), uncertain);
}

TEST_F(StaleOwner, leaves_a_record_that_an_unreachable_upstream_cannot_free) {
  stop_owner_at(Point::request_sent);
  ASSERT_TRUE(upstream_.wait_for(1));
  auto setup = gateway_->setup();
  setup.upstream = "http://127.0.0.1:" + std::to_string(refused_port());
  GatewayProcess cut_off(directory_.path().string(), setup);
  cut_off.start();
  HttpAnswer answer;
  EXPECT_TRUE(eventually([&] {
    answer = HttpClient(cut_off.port()).send(order("K"));
    return answer.status != 409;
  }));
  EXPECT_EQ(in_words(answer), uncertain);
  EXPECT_EQ(upstream_.count(), 1u);
}

TEST_F(StaleOwner, that_finishes_late_settles_its_own_uncertain_record_where_nobody_took_over) {
  open({.defaults = "lease = \"1s\"\n"});
  owner_ = std::make_unique<GatewayProcess>(directory_.path().string(), gateway_->setup());
  owner_->start({{"EINMAL_STOP_AT", "answer_started"}});
  upstream_.always(Play().answer(201, "late"));
  client_ = std::make_unique<RawClient>(owner_->port());
  client_->send(order("K"));
  ASSERT_TRUE(eventually([&] { return owner_->process().is_stopped(); }));
  EXPECT_EQ(in_words(send_until_decided(order("K"))), uncertain);
  const auto late = wake_owner();
  EXPECT_THAT(in_words(late), AnyOf("201 executed", "201 unrecorded"));
  EXPECT_TRUE(eventually([&] { return in_words(send(order("K"))) == "201 replayed"; }));
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

TEST_F(StaleOwner, is_nobody_who_still_renews_however_long_the_work_takes) {
  open({.defaults = "on_lease_expiry = \"takeover\"\nlease = \"2s\"\nstore_grace = \"900ms\"\n"});
  const auto second = another();
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "slow"));
  auto owner = std::async(std::launch::async, [&] { return send(order("K")); });
  ASSERT_TRUE(upstream_.wait_for(1));
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] {
    EXPECT_EQ(in_words(HttpClient(second->port()).send(order("K"))), "409 in-progress in-progress");
    return std::chrono::steady_clock::now() - start > Milliseconds(6000);
  }));
  gate->open();
  EXPECT_EQ(in_words(owner.get()), "201 executed");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

}  // namespace
}  // namespace einmal::test
