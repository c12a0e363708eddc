#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "einmal/client/client.hpp"
#include "support/gateway.hpp"

/// Window 10 of the uncertainty windows: the upstream is down under many clients. They are all
/// there at once, each with a client of its own, as sixty processes would have; the gateway frees
/// their keys each time. What reaches the upstream stays bounded and comes in no peaks, and
/// afterwards everything is done once. (Workflows: einmal/workflow/outage_test.cpp.)

namespace einmal::test {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

class UpstreamDown : public GatewayTest, public ::testing::WithParamInterface<int> {
 protected:
  static constexpr std::size_t clients_ = 60;

  client::Outcome order_once(std::size_t i) {
    SystemClock clock;
    SystemRandom random;
    client::SystemPause pause;
    const auto transport = client::make_curl_transport();
    const auto journal = client::Journal::open(directory_.file("journal" + std::to_string(i)),
                                               random, clock.wall_now());
    client::ClientOptions options;
    options.patience.max_attempts = 20;
    options.patience.backoff_base = milliseconds(250);
    options.patience.backoff_cap = seconds(5);
    client::Client client({**journal, *transport, clock, random, pause}, options);
    client::Request request;
    request.url = "http://127.0.0.1:" + std::to_string(gateway_->port()) + "/orders";
    request.headers = {{"Content-Type", "application/json"}, {"X-Caller", "alice"}};
    request.body = "{\"order\":" + std::to_string(i) + "}";
    return client.send("order " + std::to_string(i), request).value();
  }
};

TEST_P(UpstreamDown, is_not_multiplied_by_its_clients_and_ends_without_duplicates) {
  open();
  const auto began = Steady::now();
  const auto down = seconds(GetParam());
  std::mutex mutex;
  std::vector<Steady::duration> arrivals, repetitions;
  std::map<std::string, int> effects, seen;
  upstream_.always([&](const HttpRequest& request, std::size_t) {
    const auto at = Steady::now() - began;
    const std::lock_guard lock(mutex);
    arrivals.push_back(at);
    // They all came at once; from the fourth attempt on their delays have spread them.
    if (++seen[request.header("Idempotency-Key")] > 3) repetitions.push_back(at);
    if (at < down) return Play().answer(503, "down", {{"Einmal-Outcome", "released"}});
    ++effects[request.header("Idempotency-Key")];
    return Play().answer(201, "made");
  });
  std::atomic<int> attempts = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < clients_; ++i) {
    threads.emplace_back([&, i] {
      auto outcome = order_once(i);
      attempts += outcome.attempts;
      // Whose patience ended kept its key, and asks again as after a restart.
      for (int n = 0; n < 20 && !client::is_settled(outcome.verdict); ++n) {
        outcome = order_once(i);
        attempts += outcome.attempts;
      }
      EXPECT_TRUE(std::holds_alternative<client::verdict::Succeeded>(outcome.verdict) ||
                  std::holds_alternative<client::verdict::Replayed>(outcome.verdict))
          << outcome.detail;
    });
  }
  for (auto& thread : threads) thread.join();

  const auto ended = *std::max_element(arrivals.begin(), arrivals.end());
  std::map<long long, int> in_bin;
  for (const auto at : repetitions)
    ++in_bin[std::chrono::duration_cast<milliseconds>(at).count() / 250];
  int peak = 0;
  for (const auto& [bin, count] : in_bin) peak = std::max(peak, count);
  std::printf(
      "%zu clients, %d s down: %d attempts (%.1f an order), at most %d in 250 ms "
      "from the fourth attempt on, the last order %.1f s after the upstream was back\n",
      clients_, GetParam(), attempts.load(), static_cast<double>(attempts) / clients_, peak,
      std::chrono::duration<double>(ended - down).count());
  EXPECT_EQ(effects.size(), clients_);
  for (const auto& [key, count] : effects) EXPECT_EQ(count, 1) << key;
  // The gateway sends nothing again by itself: what the clients attempted is all that there is.
  EXPECT_LE(arrivals.size(), static_cast<std::size_t>(attempts));
  EXPECT_LE(attempts, static_cast<int>(clients_) * (10 + GetParam() * 3 / 5));
  // In step it would be all of them.
  EXPECT_LT(peak, static_cast<int>(clients_) * 2 / 3);
}

INSTANTIATE_TEST_SUITE_P(Seconds, UpstreamDown, ::testing::Values(10, 30),
                         [](const auto& each) { return std::to_string(each.param); });

}  // namespace
}  // namespace einmal::test
