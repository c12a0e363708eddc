#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/command.hpp"
#include "support/gateway.hpp"

/// Field cases C12 (several processes and threads on one file), C21 (retention and sweep) and the
/// store's ill days: full, stopped, foreign.

namespace einmal::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SharedFile : public GatewayTest {};

TEST_F(SharedFile, three_gateways_with_many_clients_and_duplicates_execute_each_key_once) {
  open();
  const auto second = another();
  const auto third = another();
  const std::vector<std::uint16_t> ports{gateway_->port(), second->port(), third->port()};
  constexpr int keys = 600;
  constexpr int threads = 24;
  std::atomic<int> next{0};
  std::mutex mutex;
  std::map<std::string, std::size_t> odd;
  std::map<std::string, std::set<std::string>> bodies;
  std::vector<std::thread> clients;
  for (int t = 0; t < threads; ++t) {
    clients.emplace_back([&, t] {
      while (true) {
        const int n = next++;
        if (n >= keys * 6 / 5) return;
        // Every sixth request repeats a key that others are about to use or have used.
        const auto key = "K" + std::to_string(n % 6 == 5 ? (n * 7) % keys : n % keys);
        const auto answer = HttpClient(ports[static_cast<std::size_t>(t) % 3]).send(order(key));
        const std::lock_guard lock(mutex);
        if (answer.status == 201) {
          bodies[key].insert(answer.body);
        } else {
          ++odd[in_words(answer)];
        }
      }
    });
  }
  for (auto& client : clients) client.join();
  for (const auto& [words, count] : odd) {
    EXPECT_EQ(words, "409 in-progress in-progress") << count << " times";
  }
  for (const auto& [key, seen] : bodies) {
    EXPECT_EQ(seen.size(), 1u) << key << " has one result";
    EXPECT_EQ(upstream_.effects(key), 1u) << key;
  }
  EXPECT_EQ(upstream_.count(), bodies.size());
}

TEST_F(SharedFile, held_by_a_process_that_stands_still_is_503_and_nothing_is_forwarded) {
  open();
  // Another process takes the write lock and is stopped with it.
  ChildProcess holder({"/usr/bin/sqlite3", directory_.file("einmal.db"), "-cmd", "BEGIN IMMEDIATE",
                       "-cmd", ".shell kill -STOP $PPID", "SELECT 1"});
  ASSERT_TRUE(eventually([&] { return holder.is_stopped(); })) << holder.errors();
  const auto refused = send(order("K"));
  EXPECT_EQ(refused.status, 503) << in_words(refused);
  EXPECT_EQ(reason_of(refused), "store-unavailable");
  EXPECT_NE(refused.header("Retry-After"), "");
  EXPECT_EQ(upstream_.begun(), 0u);
  holder.kill();
  EXPECT_TRUE(eventually([&] { return send(order("K")).status == 201; }));
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

class Retention : public GatewayTest {};

TEST_F(Retention, promised_to_a_record_is_kept_when_the_configuration_changes) {
  open({.defaults = "retention = \"1h\"\n"});
  EXPECT_EQ(in_words(send(order("long"))), "201 executed");
  gateway_->kill();
  gateway_->setup().defaults = "retention = \"200ms\"\n";
  gateway_->restart();
  EXPECT_EQ(in_words(send(order("short"))), "201 executed");
  EXPECT_TRUE(eventually([&] { return status_of(send(order("short"))) == "executed"; }));
  EXPECT_EQ(in_words(send(order("long"))), "201 replayed");
}

class FullStore : public GatewayTest {};

TEST_F(FullStore, refuses_with_503_executes_nothing_and_goes_on_when_there_is_room) {
  GatewayProcess process(
      directory_.path().string(),
      GatewaySetup{.upstream = upstream_.url(), .defaults = "retention = \"1h\"\n"});
  process.limit_file_size(600);
  process.start();
  const HttpClient client(process.port());
  HttpAnswer answer;
  int executed = 0;
  const std::string body = "{\"fill\":\"" + std::string(50'000, 'f') + "\"}";
  upstream_.always(Play().answer(201, std::string(50'000, 'a')));
  for (; executed < 200; ++executed) {
    answer = client.send(order("K" + std::to_string(executed), body));
    if (answer.status != 201) break;
  }
  ASSERT_LT(executed, 200) << "the limit was never met";
  // The effect of the last one may have happened; what is said about it is never a success.
  EXPECT_THAT(in_words(answer), AnyOf(StartsWith("503"), StartsWith("504"))) << in_words(answer);
  const auto before = upstream_.begun();
  const auto refused = client.send(order("one-more", body));
  EXPECT_EQ(refused.status, 503) << in_words(refused);
  EXPECT_EQ(upstream_.begun(), before);
  process.kill();
  process.limit_file_size(0);
  process.restart();
  EXPECT_EQ(in_words(HttpClient(process.port()).send(order("K0", body))), "201 replayed");
  EXPECT_EQ(in_words(HttpClient(process.port()).send(order("one-more", body))), "201 executed");
}

}  // namespace
}  // namespace einmal::test
