#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/gateway.hpp"
#include "support/shop.hpp"

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
    shop_ = std::make_unique<ShopProcess>(directory_.path().string(), std::move(switches));
    open(
        {.upstream = shop_->url(), .defaults = "lease = \"1s\"\non_lease_expiry = \"takeover\"\n"});
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

  std::unique_ptr<ShopProcess> shop_;
};

TEST_F(LateForward, is_refused_by_a_shop_that_remembers_the_highest_token) {
  take_over_a_stopped_owner({"--fencing"});
  EXPECT_EQ(shop_->effects(), "1");
}

TEST_F(LateForward, is_booked_a_second_time_by_a_shop_that_looks_at_neither_token_nor_key) {
  take_over_a_stopped_owner({});
  EXPECT_EQ(shop_->effects(), "2") << "takeover before such an upstream is a second effect";
}

TEST_F(LateForward, finds_its_key_booked_in_a_shop_that_deduplicates) {
  take_over_a_stopped_owner({"--idempotent"});
  EXPECT_EQ(shop_->effects(), "1");
}

}  // namespace
}  // namespace einmal::test
