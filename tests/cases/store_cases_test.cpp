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
    // A store that is slow on a busy machine may refuse, and then nothing was forwarded.
    EXPECT_THAT(words, AnyOf("409 in-progress in-progress", "503 rejected store-unavailable"))
        << count << " times";
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

TEST_F(Retention, over_leaves_nothing_behind_once_the_sweeper_came_by) {
  open({.defaults = "retention = \"300ms\"\n"});
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(in_words(send(order("K" + std::to_string(i)))), "201 executed");
  EXPECT_TRUE(eventually([&] {
    return run_einmal({"records", "list", "--json", "--store", gateway_->store_url()}).output ==
           "[]\n";
  }));
}

class FullStore : public GatewayTest {};

TEST_F(FullStore, refuses_with_503_executes_nothing_and_goes_on_when_there_is_room) {
  GatewayProcess process(
      directory_.path().string(),
      GatewaySetup{.upstream = upstream_.url(), .defaults = "retention = \"1h\"\n"});
  process.limit_file_size(600);
  process.start();
  const std::string body = "{\"fill\":\"" + std::string(50'000, 'f') + "\"}";
  upstream_.always(Play().answer(201, std::string(50'000, 'a')));
  // The file, or its log, meets the limit again and again; what a checkpoint makes free is used.
  std::map<std::string, std::string> said;
  std::size_t refused = 0;
  for (int i = 0; i < 40 && refused < 2; ++i) {
    const auto key = "K" + std::to_string(i);
    const auto before = upstream_.begun();
    const auto answer = HttpClient(process.port()).send(order(key, body));
    said[key] = in_words(answer);
    EXPECT_THAT(said[key],
                AnyOf("201 executed", "201 unrecorded", StartsWith("503"), StartsWith("504")));
    if (answer.status != 503) continue;
    ++refused;
    EXPECT_EQ(reason_of(answer), "store-unavailable");
    EXPECT_EQ(upstream_.begun(), before) << "refused, so nothing was forwarded";
  }
  EXPECT_GT(refused, 0u) << "the limit was never met";
  process.kill();
  process.limit_file_size(0);
  process.restart();
  for (const auto& [key, words] : said) {
    const auto again = in_words(HttpClient(process.port()).send(order(key, body)));
    if (words == "201 executed") {
      EXPECT_EQ(again, "201 replayed") << key;
    }
    if (words.starts_with("503")) {
      EXPECT_EQ(again, "201 executed") << key;
    }
    EXPECT_LE(upstream_.effects(key), 1u) << key;
  }
}

}  // namespace
}  // namespace einmal::test
