#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "einmal/sqlite/sqlite_store.hpp"

namespace einmal {
namespace {

namespace fs = std::filesystem;

/// What a child tells before it is killed: only what was answered.
struct Answered {
  std::uint32_t round = 0, thread = 0, number = 0;
  std::uint32_t completed = 0;
  std::uint64_t generation = 0;
};

std::string key_of(const Answered& a) {
  return std::to_string(a.round) + "-" + std::to_string(a.thread) + "-" + std::to_string(a.number);
}
Scope scope_of(const Answered& a) { return *Scope::make("app", "alice", "pay", key_of(a)); }

event::Claim new_claim(Random& random) {
  event::Claim claim;
  claim.policies.lease = std::chrono::seconds(30);
  claim.owner = OwnerToken::draw(random);
  claim.operation_id = OperationId::draw(random);
  return claim;
}

void tell(int fd, const Answered& answered) {
  if (write(fd, &answered, sizeof answered) != sizeof answered) _exit(3);
}

// Claims and completes as fast as it can, in several threads, until it is killed.
[[noreturn]] void child(const std::string& path, std::uint32_t round, int fd) {
  SystemClock clock;
  SystemRandom random;
  auto store = open_sqlite_store(path, {}, clock, random);
  if (!store) _exit(2);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Answered answered{round, t, 0, 0, 0};
      while (true) {
        ++answered.number;
        const auto scope = scope_of(answered);
        auto claimed = ask_transition(**store, {scope, new_claim(random), nullptr, {}});
        if (!claimed || !std::holds_alternative<decision::Execute>(*claimed)) _exit(4);
        const auto& record = std::get<decision::Execute>(*claimed).record;
        answered.generation = number(record.generation);
        answered.completed = 0;
        tell(fd, answered);
        event::Settle settle;
        settle.generation = record.generation;
        settle.owner = record.owner;
        settle.result.status = 201;
        settle.result.body = key_of(answered);
        auto settled = ask_transition(**store, {scope, settle, nullptr, {}});
        if (!settled || !std::holds_alternative<decision::Ok>(*settled)) _exit(5);
        answered.completed = 1;
        tell(fd, answered);
      }
    });
  }
  while (true) pause();
}

TEST(SqliteCrash, WhatWasAnsweredSurvivesKillMinusNineAndNoGenerationComesTwice) {
  std::string name = (fs::temp_directory_path() / "einmal-crash-XXXXXX").string();
  const fs::path directory = mkdtemp(name.data());
  const std::string path = (directory / "a.db").string();
  std::random_device device;
  const std::uint64_t seed = device();
  SeededRandom choices(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::map<std::string, Answered> told;
  std::set<std::uint64_t> generations;
  for (std::uint32_t round = 0; round < 15; ++round) {
    int fds[2];
    ASSERT_EQ(pipe(fds), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      close(fds[0]);
      child(path, round, fds[1]);
    }
    close(fds[1]);
    const std::uint64_t enough = 1 + choices.below(600);
    std::uint64_t seen = 0;
    Answered answered;
    while (read(fds[0], &answered, sizeof answered) == sizeof answered) {
      if (!answered.completed) {
        EXPECT_TRUE(generations.insert(answered.generation).second)
            << "generation " << answered.generation << " was handed out twice";
      }
      told[key_of(answered)] = answered;
      if (++seen == enough) kill(pid, SIGKILL);
    }
    close(fds[0]);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself with " << WEXITSTATUS(status);
  }

  SystemClock clock;
  SystemRandom random;
  auto store = open_sqlite_store(path, {}, clock, random);
  ASSERT_TRUE(store) << store.error().message;
  for (const auto& [key, answered] : told) {
    auto found = ask(**store, request::ReadScope{scope_of(answered), true});
    ASSERT_TRUE(found) << found.error().message;
    const auto& record = std::get<answer::Found>(*found).record;
    ASSERT_TRUE(record) << key;
    EXPECT_EQ(number(record->record.generation), answered.generation);
    if (answered.completed) {
      ASSERT_EQ(record->record.state, State::completed) << key;
      EXPECT_EQ(record->record.result->body, key);
    }
  }
  auto next = ask_transition(
      **store, {*Scope::make("app", "alice", "pay", "next"), new_claim(random), nullptr, {}});
  ASSERT_TRUE(next);
  EXPECT_GT(number(std::get<decision::Execute>(*next).record.generation), *generations.rbegin());
  store->reset();
  fs::remove_all(directory);
}

}  // namespace
}  // namespace einmal
