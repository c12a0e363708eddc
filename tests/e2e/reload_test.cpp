#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/gateway.hpp"

/// SIGHUP: the configuration is read again while requests run.

namespace einmal::test {
namespace {

using ::testing::HasSubstr;

class Reload : public GatewayTest {
 protected:
  /// Replaces the file and asks for it to be read.
  void reload(const std::string& text) {
    std::ofstream(gateway_->config_file()) << text;
    gateway_->process().signal(SIGHUP);
  }
  void reload_with_retention(int days) {
    gateway_->setup().defaults = "retention = \"" + std::to_string(days) + "d\"\n";
    reload(gateway_->config());
  }
  std::string published() const {
    return HttpClient(gateway_->port())
        .get("/.well-known/idempotency", {{"X-Caller", "alice"}})
        .body;
  }
  bool publishes(int days) const {
    return published().find("\"retention\":\"P" + std::to_string(days) + "D\"") !=
           std::string::npos;
  }
};

TEST_F(Reload, ten_times_under_a_thousand_requests_fails_none_of_them) {
  constexpr int threads = 4, each = 250, reloads = 10;
  open({.defaults = "retention = \"1d\"\n"});
  upstream_.always(Play().answer(201, "{}"));
  std::atomic<int> sent = 0, failed = 0;
  std::vector<std::thread> clients;
  for (int t = 0; t < threads; ++t) {
    clients.emplace_back([&, t] {
      for (int i = 0; i < each; ++i, ++sent) {
        const auto answer = send(order("K" + std::to_string(t) + "-" + std::to_string(i)));
        if (in_words(answer) != "201 executed") ++failed;
      }
    });
  }
  for (int n = 1; n <= reloads; ++n) {
    // Spread over the requests, whatever their speed.
    EXPECT_TRUE(eventually([&] { return sent >= (n - 1) * threads * each / reloads; }));
    reload_with_retention(n + 1);
    EXPECT_TRUE(eventually([&] { return publishes(n + 1); })) << "the file of reload " << n;
  }
  for (auto& client : clients) client.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(sent, threads * each);
  EXPECT_EQ(in_words(send(order("K0-0"))), "201 replayed");
}

TEST_F(Reload, of_a_file_that_is_wrong_changes_nothing) {
  open({.defaults = "retention = \"1d\"\n"});
  upstream_.always(Play().answer(201, "{}"));
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  const std::string well = gateway_->config();
  for (const std::string& wrong :
       {well + "[caller", well + "[limits]\nno_such_limit = 1\n", std::string()}) {
    reload(wrong);
    // The next file is read after the wrong one, so what it changes tells that both were.
    EXPECT_EQ(in_words(send(order("K"))), "201 replayed");
    EXPECT_THAT(published(), HasSubstr("\"retention\":\"P1D\""));
  }
  reload_with_retention(3);
  EXPECT_TRUE(eventually([&] { return publishes(3); }));
  EXPECT_EQ(in_words(send(order("K"))), "201 replayed");
  EXPECT_TRUE(gateway_->process().is_running());
}

}  // namespace
}  // namespace einmal::test
