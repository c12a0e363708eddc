#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "einmal/sqlite/sqlite_fixture.hpp"
#include "einmal/testing/fault_vfs.hpp"

/// The store on a disk that fails: whatever operation of whatever sort does, once or for good,
/// nothing that was answered is lost, nothing is half there, and the store works again.
namespace einmal::testing {
namespace {

using Fault = FaultVfs::Fault;
using Operation = FaultVfs::Operation;
using Kind = FaultVfs::Kind;

/// A client that remembers what it was told.
class Client {
 public:
  explicit Client(Random& random) : random_(random) {}

  /// Claims a few keys, completes most of them, marks and releases others; goes on after errors.
  void work(Store& store, const std::string& prefix) {
    for (int i = 0; i < 4; ++i) {
      const std::string key = prefix + std::to_string(i);
      const auto record = claim_key(store, key);
      if (!record) continue;
      if (i == 2) {
        release(store, key, *record);
      } else if (i < 2) {
        complete(store, key, *record);
      }
    }
    static_cast<void>(ask(store, request::Overdue{}));
    static_cast<void>(ask(store, request::Sweep{}));
  }

  /// Whether the file still says all that this client was told.
  void check(Store& store) {
    for (const auto& [key, told] : told_) {
      auto read = ask(store, request::ReadScope{pay_scope(key), true});
      ASSERT_TRUE(read) << read.error().message;
      const auto& found = std::get<answer::Found>(*read).record;
      EXPECT_TRUE(!told.released || !found) << key << " was released";
      if (told.released || told.in_doubt_release) continue;
      ASSERT_TRUE(found) << key << " was claimed and is not there";
      EXPECT_EQ(found->record.generation, told.record.generation);
      if (told.completed) {
        EXPECT_EQ(found->record.state, State::completed) << key;
        ASSERT_TRUE(found->record.result);
        EXPECT_EQ(found->record.result->body, key);
      } else if (!told.in_doubt_completion) {
        EXPECT_EQ(found->record.state, State::processing) << key;
      }
    }
    for (const auto& key : refused_) {
      auto read = ask(store, request::ReadScope{pay_scope(key), true});
      ASSERT_TRUE(read);
      const auto& found = std::get<answer::Found>(*read).record;
      EXPECT_FALSE(found) << key << " was said not to be claimed";
    }
  }

 private:
  struct Told {
    Record record;
    bool completed = false, released = false;
    bool in_doubt_completion = false, in_doubt_release = false;
  };

  static void expect_honest(const Error& error) {
    EXPECT_TRUE(error.code == ErrorCode::unavailable || error.code == ErrorCode::in_doubt)
        << static_cast<int>(error.code) << ": " << error.message;
  }

  std::optional<Record> claim_key(Store& store, const std::string& key) {
    auto claimed = claim(store, key, random_);
    if (!claimed) {
      expect_honest(claimed.error());
      if (claimed.error().code == ErrorCode::unavailable) refused_.insert(key);
      return std::nullopt;
    }
    const auto* execute = std::get_if<decision::Execute>(&*claimed);
    if (!execute) {
      ADD_FAILURE() << "a new key was not executed but " << claimed->index();
      return std::nullopt;
    }
    EXPECT_TRUE(generations_.insert(number(execute->record.generation)).second)
        << "a generation came twice";
    told_[key].record = execute->record;
    return execute->record;
  }

  void complete(Store& store, const std::string& key, const Record& record) {
    auto settled = ask_transition(
        store, {pay_scope(key), settle_of(record.generation, record.owner, key), nullptr, {}});
    if (settled) {
      EXPECT_TRUE(std::holds_alternative<decision::Ok>(*settled));
      told_[key].completed = true;
    } else {
      expect_honest(settled.error());
      told_[key].in_doubt_completion = settled.error().code == ErrorCode::in_doubt;
    }
  }

  void release(Store& store, const std::string& key, const Record& record) {
    auto released = ask_transition(
        store, {pay_scope(key), event::Release{record.generation, record.owner}, nullptr, {}});
    if (released) {
      told_[key].released = true;
    } else {
      expect_honest(released.error());
      told_[key].in_doubt_release = released.error().code == ErrorCode::in_doubt;
    }
  }

  Random& random_;
  std::map<std::string, Told> told_;
  std::set<std::string> refused_;  ///< Claims answered with "nothing was changed".
  std::set<std::uint64_t> generations_;
};

class SqliteFaults : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Store>> open(bool through_faults = true) {
    SqliteOptions options;
    options.busy_limit = std::chrono::milliseconds(200);
    options.checkpoint_bytes = 20'000;  // so that the checkpoint meets the faults as well
    options.wal_limit_bytes = 60'000;
    if (through_faults) options.vfs = vfs_.name();
    return open_sqlite_store(directory_.file(), options, clock_, random_);
  }

  /// One run with one fault; whether the fault happened.
  bool run(const Fault& fault) {
    Client client(random_);
    const std::string prefix = "k" + std::to_string(++runs_) + "-";
    vfs_.arm(fault);
    auto store = open();
    if (store) client.work(**store, prefix);
    const bool fired = vfs_.fired();
    vfs_.disarm();
    if (!store) {
      EXPECT_NE(store.error().message.find(directory_.file()), std::string::npos)
          << store.error().message;
      store = open();
    }
    EXPECT_TRUE(store) << store.error().message;
    if (!store) return false;
    EXPECT_TRUE(works_again(**store)) << "the fault is over, but the store does not work";
    store->reset();
    auto again = open(false);
    EXPECT_TRUE(again) << again.error().message;
    if (again) client.check(**again);
    return fired;
  }

  bool works_again(Store& store) {
    for (int attempt = 0; attempt < 50; ++attempt) {
      if (execute_once(store, "again" + std::to_string(++runs_), random_)) return true;
    }
    return false;
  }

  /// N rising until the fault does not happen any more.
  void loop(Fault fault) {
    for (fault.nth = 1; fault.nth < 2000; ++fault.nth) {
      SCOPED_TRACE("the " + std::to_string(fault.nth) + "th");
      if (!run(fault)) {
        EXPECT_GT(fault.nth, 1u) << "the fault never happened";
        break;
      }
      if (HasFailure()) break;
    }
    expect_sound(directory_.file());
  }

  TemporaryDirectory directory_;
  FaultVfs vfs_;
  SystemClock clock_;
  SystemRandom random_;
  int runs_ = 0;
};

TEST_F(SqliteFaults, OfOneWriteLoseNothing) { loop({Operation::write, Kind::io_error}); }
TEST_F(SqliteFaults, OfEveryWriteFromOneOnLoseNothing) {
  loop({Operation::write, Kind::io_error, 1, true});
}
TEST_F(SqliteFaults, OfOneShortWriteLoseNothing) { loop({Operation::write, Kind::short_write}); }
TEST_F(SqliteFaults, OfAFullDiskOnceLoseNothing) { loop({Operation::write, Kind::full}); }
TEST_F(SqliteFaults, OfADiskThatIsFullFromSomeMomentOnLoseNothing) {
  loop({Operation::write, Kind::full, 1, true});
}
TEST_F(SqliteFaults, OfOneSyncLoseNothing) { loop({Operation::sync, Kind::io_error}); }
TEST_F(SqliteFaults, OfEverySyncFromOneOnLoseNothing) {
  loop({Operation::sync, Kind::io_error, 1, true});
}
TEST_F(SqliteFaults, OfOneReadLoseNothing) { loop({Operation::read, Kind::io_error}); }
TEST_F(SqliteFaults, OfOneOpenLoseNothing) { loop({Operation::open, Kind::io_error}); }
TEST_F(SqliteFaults, OfEveryOpenFromOneOnLoseNothing) {
  loop({Operation::open, Kind::io_error, 1, true});
}
TEST_F(SqliteFaults, OfTheSharedMemoryLoseNothing) { loop({Operation::shm_map, Kind::io_error}); }
TEST_F(SqliteFaults, OfRemovingAFileLoseNothing) {
  // Happens only when the last one closes the file: nothing is answered meanwhile.
  for (int i = 0; i < 3; ++i) {
    Client client(random_);
    auto store = open();
    ASSERT_TRUE(store) << store.error().message;
    client.work(**store, "r" + std::to_string(i) + "-");
    vfs_.arm({Operation::remove, Kind::io_error});
    store->reset();
    EXPECT_TRUE(vfs_.fired());
    vfs_.disarm();
    auto again = open(false);
    ASSERT_TRUE(again) << again.error().message;
    client.check(**again);
  }
  expect_sound(directory_.file());
}

// --- loss of power

TEST_F(SqliteFaults, PowerLostInTheMiddleOfAnyWriteLosesNothingThatWasAnswered) {
  std::uint64_t seed = 0;
  random_.fill(&seed, sizeof seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  SeededRandom disk(seed);
  for (const Operation operation : {Operation::write, Operation::sync}) {
    for (std::uint64_t nth = 1; nth < 200; ++nth) {
      SCOPED_TRACE("at the " + std::to_string(nth) + "th");
      Client client(random_);
      vfs_.arm({operation, Kind::stall, nth});
      std::atomic<bool> finished{false}, powered{true};
      std::thread worker([&] {
        auto store = open();
        if (store) {
          client.work(**store, "p" + std::to_string(++runs_) + "-");
        }
        finished = true;
        while (powered)
          std::this_thread::yield();  // so that the power fails before the file closes
      });
      const bool stalled = vfs_.wait_until_stalled_or([&] { return finished.load(); });
      vfs_.cut_power();
      powered = false;
      worker.join();
      vfs_.restore_power(nth % 3 == 0 ? nullptr : &disk);
      {
        auto again = open(false);
        ASSERT_TRUE(again) << again.error().message;
        client.check(**again);
      }
      if (!stalled) break;
      if (HasFailure()) return;
    }
  }
  expect_sound(directory_.file());
}

// --- answers while the disk stands still

TEST_F(SqliteFaults, AReplayIsAnsweredWhileAFlushStandsStill) {
  auto store = open();
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE(execute_once(**store, "done", random_));
  vfs_.arm({Operation::sync, Kind::stall, 1, false, FaultVfs::File::wal});
  std::thread writer([&] { EXPECT_TRUE(execute_once(**store, "slow", random_)); });
  ASSERT_TRUE(vfs_.wait_until_stalled());
  auto replayed = claim(**store, "done", random_);
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_TRUE(std::holds_alternative<decision::Replay>(*replayed));
  vfs_.release();
  writer.join();
}

class Batches final : public StoreObserver {
 public:
  void committed(std::size_t commands, Duration) noexcept override {
    const std::lock_guard lock(mutex_);
    sizes_.push_back(commands);
  }
  std::vector<std::size_t> sizes() const {
    const std::lock_guard lock(mutex_);
    return sizes_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::size_t> sizes_;
};

TEST_F(SqliteFaults, WhatCameDuringAFlushIsCommittedTogether) {
  auto store = open();
  ASSERT_TRUE(store) << store.error().message;
  Batches batches;
  (*store)->observe(&batches);
  vfs_.arm({Operation::sync, Kind::stall, 1, false, FaultVfs::File::wal});
  std::vector<std::thread> threads;
  std::atomic<int> executed = 0;
  threads.emplace_back([&] { executed += claim(**store, "first", random_).has_value(); });
  ASSERT_TRUE(vfs_.wait_until_stalled());
  std::atomic<int> sent = 0;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&, i] {
      ++sent;
      executed += claim(**store, "k" + std::to_string(i), random_).has_value();
    });
  }
  while (sent < 20) std::this_thread::yield();
  vfs_.release();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(executed, 21);
  const auto sizes = batches.sizes();
  EXPECT_EQ(sizes.front(), 1u) << "one command alone waits for nobody";
  EXPECT_LT(sizes.size(), 21u) << "what waits is committed together";
}

}  // namespace
}  // namespace einmal::testing
