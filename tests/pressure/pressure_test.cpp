#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/gateway.hpp"

/// Many clients at once, polite and otherwise: memory, descriptors and threads stay bounded, and
/// what they leave behind is nothing. Each test prints its figures.

namespace einmal::test {
namespace {

using Clock = std::chrono::steady_clock;

std::size_t status_number(pid_t pid, std::string_view name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stoul(line.substr(name.size() + 1));
  }
  return 0;
}
std::size_t resident_kib(pid_t pid) { return status_number(pid, "VmRSS:"); }
std::size_t threads(pid_t pid) { return status_number(pid, "Threads:"); }
std::size_t descriptors(pid_t pid) {
  const std::filesystem::directory_iterator entries("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

class Pressure : public GatewayTest {
 protected:
  pid_t pid() const { return gateway_->process().pid(); }

  std::vector<std::unique_ptr<RawClient>> connect(std::size_t n) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (std::size_t i = 0; i < n; ++i)
      clients.push_back(std::make_unique<RawClient>(gateway_->port()));
    return clients;
  }
};

TEST_F(Pressure, ten_thousand_idle_connections_take_little_memory_and_no_time) {
  constexpr std::size_t n = 9'000;  // Below the usual hard limit of descriptors for both sides.
  constexpr std::size_t limit_kib = 128 * 1024;
  open({.limits = "connections = 20000\n"});
  auto clients = connect(n);
  EXPECT_EQ(send(order("warm")).status,
            201);  // What follows replays: nobody waits, none is told to.
  for (auto& client : clients) client->send(order("warm"));
  for (auto& client : clients) ASSERT_EQ(client->read_answer().status / 100, 2);
  // A connection that idles gives its buffers back: memory sinks below the limit and stays there.
  EXPECT_TRUE(eventually([&] { return resident_kib(pid()) < limit_kib; }));
  std::printf("%zu idle connections: %zu KiB resident, %.1f KiB each\n", n, resident_kib(pid()),
              static_cast<double>(resident_kib(pid())) / n);
  EXPECT_EQ(send(order("fresh")).status, 201);
  for (std::size_t i = 0; i < n; i += 100) {
    clients[i]->send(order("fresh"));
    EXPECT_EQ(clients[i]->read_answer().status, 201);
  }
}

TEST_F(Pressure, a_thousand_slow_uploads_stay_within_the_buffer_budget) {
  constexpr std::size_t n = 1'000;
  constexpr std::size_t budget_mib = 32;
  open({.limits = "buffer_budget = \"32MiB\"\nconnections = 20000\n"});
  auto clients = connect(n);
  const std::string piece(64 * 1024, 'x');
  for (std::size_t i = 0; i < n; ++i) {
    clients[i]->send("POST /orders HTTP/1.1\r\nHost: a\r\nX-Caller: alice\r\nIdempotency-Key: U" +
                     std::to_string(i) + "\r\nContent-Length: 1048576\r\n\r\n" + piece);
  }
  std::vector<std::size_t> refused;
  std::size_t peak = 0;
  for (int round = 0; round < 15; ++round) {
    for (auto& client : clients) {
      if (client && !client->send(piece)) client.reset();
    }
    peak = std::max(peak, resident_kib(pid()));
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!clients[i]) {
      refused.push_back(i);  // It was told so and its connection ended while it still sent.
      continue;
    }
    const auto answer = clients[i]->read_answer();
    if (answer.status == 503) {
      refused.push_back(i);
      EXPECT_EQ(reason_of(answer), "overloaded");
    } else if (answer.is_whole()) {
      EXPECT_EQ(answer.status, 201);
    } else {
      refused.push_back(i);
    }
  }
  std::printf("%zu uploads of 1 MiB at once: %zu refused, at most %zu KiB resident\n", n,
              refused.size(), peak);
  EXPECT_LT(peak, (budget_mib + 64) * 1024);
  EXPECT_LT(refused.size(), n);
  // Nothing was claimed for those that were refused: all of them pass one after another.
  for (std::size_t i = 0; i < refused.size(); i += 97) {
    const auto retried = send(order("U" + std::to_string(refused[i]), std::string(1 << 20, 'x')));
    EXPECT_EQ(retried.status, 201) << in_words(retried);
  }
}

TEST_F(Pressure, a_thousand_waiters_hold_no_store_resource_and_hear_at_once) {
  constexpr std::size_t n = 1'000;
  open({.limits = "waiters = 2000\nwaiters_per_key = 2000\nwaiters_per_caller = 2000\n",
        .defaults = "in_flight = \"wait\"\nwait = \"60s\"\n"});
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "made"));
  RawClient original(gateway_->port());
  original.send(order("K"));
  ASSERT_TRUE(upstream_.wait_for(1));
  const auto before_threads = threads(pid());
  const auto before_descriptors = descriptors(pid());

  auto waiters = connect(n);
  for (auto& waiter : waiters) waiter->send(order("K"));
  // One that comes after all of them is answered only when they all have been looked at.
  EXPECT_TRUE(eventually([&] { return descriptors(pid()) == before_descriptors + n; }));
  EXPECT_EQ(send(order("another")).status, 201);
  EXPECT_EQ(threads(pid()), before_threads);
  EXPECT_LE(descriptors(pid()), before_descriptors + n + 2);

  gate->open();
  EXPECT_EQ(original.read_answer().body, "made");
  const auto begin = Clock::now();
  for (auto& waiter : waiters) {
    const auto answer = waiter->read_answer();
    EXPECT_EQ(answer.body, "made");
    EXPECT_EQ(status_of(answer), "replayed");
  }
  const auto took = std::chrono::duration_cast<Milliseconds>(Clock::now() - begin);
  std::printf("%zu waiters heard of the completion within %lld ms\n", n,
              static_cast<long long>(took.count()));
  EXPECT_LT(took.count(), 1'000);  // Ten times the 100 ms that are aimed at.
  EXPECT_EQ(upstream_.effects("K"), 1U);
}

TEST_F(Pressure, a_thousand_clients_that_vanish_leave_every_operation_recorded) {
  constexpr std::size_t n = 1'000;
  open();
  const auto gate = std::make_shared<Gate>();
  upstream_.always(Play().wait(gate).answer(201, "made"));
  {
    auto clients = connect(n);
    for (std::size_t i = 0; i < n; ++i) {
      clients[i]->send(order("V" + std::to_string(i)));
      if (i % 3 == 0) clients[i]->reset();
    }
    EXPECT_TRUE(eventually([&] { return upstream_.begun() > 0; }));
  }
  gate->open();
  std::size_t executed_by_us = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto answer = send_until_decided(order("V" + std::to_string(i)));
    EXPECT_EQ(answer.status, 201) << in_words(answer);
    if (status_of(answer) == "executed") ++executed_by_us;
    EXPECT_LE(upstream_.effects("V" + std::to_string(i)), 1U);
  }
  std::printf("%zu clients vanished; %zu of their requests had not been claimed\n", n,
              executed_by_us);
  EXPECT_TRUE(eventually([&] { return descriptors(pid()) < 600; }));
}

TEST_F(Pressure, slow_heads_and_bodies_hold_nobody_up) {
  constexpr std::size_t n = 2'000;
  open({.limits = "connections = 20000\n"});
  auto clients = connect(n);
  for (std::size_t i = 0; i < n; ++i) {
    clients[i]->send(i % 2 == 0 ? "POST /orders HT"
                                : "POST /orders HTTP/1.1\r\nHost: a\r\nX-Caller: alice\r\n"
                                  "Idempotency-Key: slow\r\nContent-Length: 100\r\n\r\nx");
  }
  const auto begin = Clock::now();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(send(order("Q" + std::to_string(i))).status, 201);
  const auto took = std::chrono::duration_cast<Milliseconds>(Clock::now() - begin);
  std::printf("beside %zu slow clients an order took %.1f ms\n", n,
              static_cast<double>(took.count()) / 20);
  EXPECT_LT(took.count() / 20, 500);
}

}  // namespace
}  // namespace einmal::test
