#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/gateway.hpp"

/// Window 6, what einmal alone cannot close: an owner that is stopped after its last look at the
/// clock and before its first byte. When it wakes up its request goes out, although another took
/// over. Only an upstream that refuses an older fencing token is safe from that.

namespace einmal::test {
namespace {

class LateForward : public GatewayTest {
 protected:
  /// The demo shop with these switches, a gateway before it, and an order that goes through
  /// although its first owner was stopped with its hand on the wire. The owner is awake again at
  /// the end.
  void take_over_a_stopped_owner(std::vector<std::string> switches) {
    switches.insert(switches.begin(), {sibling_program("einmal"), "shop", "--listen", "127.0.0.1:0",
                                       "--ledger", directory_.file("ledger.db")});
    shop_ = std::make_unique<ChildProcess>(std::move(switches));
    const auto line = shop_->wait_for_line("listening on ");
    ASSERT_TRUE(line) << shop_->errors();
    const auto url = line->substr(line->find("http://"));
    shop_port_ = static_cast<std::uint16_t>(std::stoul(url.substr(url.rfind(':') + 1)));
    open({.upstream = url, .defaults = "lease = \"1s\"\non_lease_expiry = \"takeover\"\n"});
    GatewayProcess owner(directory_.path().string(), gateway_->setup());
    owner.start({{"EINMAL_STOP_AT", "before_first_byte"}});
    RawClient client(owner.port());
    client.send(coffee());
    ASSERT_TRUE(eventually([&] { return owner.process().is_stopped(); }));
    const auto taken = send_until_decided(coffee());
    EXPECT_EQ(in_words(taken), "201 executed");
    owner.process().resume();
    const auto late = client.read_answer();
    EXPECT_EQ(in_words(late), "201 replayed");
    EXPECT_EQ(late.body, taken.body) << "whatever the shop said, the recorded result stands";
    EXPECT_EQ(send(coffee()).body, taken.body);
  }
  static HttpRequest coffee() { return order("K", R"({"item":"coffee","amount":300})"); }
  std::string effects() const { return HttpClient(shop_port_).get("/effects").member("count"); }

  std::unique_ptr<ChildProcess> shop_;
  std::uint16_t shop_port_ = 0;
};

TEST_F(LateForward, is_refused_by_a_shop_that_remembers_the_highest_token) {
  take_over_a_stopped_owner({"--fencing"});
  EXPECT_EQ(effects(), "1");
}

TEST_F(LateForward, is_booked_a_second_time_by_a_shop_that_looks_at_neither_token_nor_key) {
  take_over_a_stopped_owner({});
  EXPECT_EQ(effects(), "2") << "takeover before such an upstream is a second effect";
}

TEST_F(LateForward, finds_its_key_booked_in_a_shop_that_deduplicates) {
  take_over_a_stopped_owner({"--idempotent"});
  EXPECT_EQ(effects(), "1");
}

}  // namespace
}  // namespace einmal::test
