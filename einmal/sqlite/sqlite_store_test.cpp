#include "einmal/sqlite/sqlite_store.hpp"

#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "einmal/sqlite/sqlite_fixture.hpp"
#include "einmal/testing/virtual_clock.hpp"

/// What is particular to the store in a file: opening, refusing, other processes, damage. What
/// every store promises is in the contract, a failing disk in sqlite_fault_test.cpp.
namespace einmal::testing {
namespace {

using namespace std::chrono_literals;

class SqliteStoreTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Store>> open(SqliteOptions options = {}) {
    return open_sqlite_store(directory_.file(), options, clock_, random_);
  }
  std::unique_ptr<Store> opened(SqliteOptions options = {}) {
    auto store = open(options);
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  /// Opening must fail with `code` and name the file.
  void expect_refused(ErrorCode code) {
    auto refused = open();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, code) << refused.error().message;
    EXPECT_NE(refused.error().message.find(directory_.file()), std::string::npos)
        << refused.error().message;
  }

  TemporaryDirectory directory_;
  VirtualClock clock_;
  SystemRandom random_;
};

// --- opening

TEST_F(SqliteStoreTest, AClaimIsCompletedAndReplayedAlsoByTheNextProcess) {
  {
    auto store = opened();
    ASSERT_TRUE(execute_once(*store, "k", random_));
  }
  auto store = opened();
  auto replayed = claim(*store, "k", random_);
  ASSERT_TRUE(replayed) << replayed.error().message;
  const auto* replay = std::get_if<decision::Replay>(&*replayed);
  ASSERT_NE(replay, nullptr);
  EXPECT_EQ(replay->record.result->body, "k");
}

TEST_F(SqliteStoreTest, TheDigestSecretIsDrawnOnceForAFile) {
  const Bytes secret = opened()->digest_secret();
  EXPECT_EQ(secret.size(), 32u);
  EXPECT_EQ(opened()->digest_secret(), secret);
  const TemporaryDirectory other;
  auto store = open_sqlite_store(other.file(), {}, clock_, random_);
  EXPECT_NE((*store)->digest_secret(), secret);
}

TEST_F(SqliteStoreTest, AnotherProgramsFileIsRefusedAndLeftAsItWas) {
  run_sql(directory_.file(), "CREATE TABLE theirs(a)");
  expect_refused(ErrorCode::incompatible);
  EXPECT_EQ(run_sql(directory_.file(), "PRAGMA journal_mode"), "delete");
}

TEST_F(SqliteStoreTest, WhatIsNoDatabaseIsRefused) {
  std::ofstream(directory_.file()) << "[gateway]\nlisten = \"127.0.0.1:8080\"\n";
  expect_refused(ErrorCode::incompatible);
}

TEST_F(SqliteStoreTest, ANewerSchemaThatExcludesThisVersionIsRefused) {
  opened().reset();
  run_sql(directory_.file(),
          "PRAGMA user_version = 7; UPDATE meta SET value = 7 WHERE name = 'oldest_writer'");
  expect_refused(ErrorCode::incompatible);
}

TEST_F(SqliteStoreTest, ANewerSchemaThatAdmitsThisVersionIsUsed) {
  opened().reset();
  run_sql(directory_.file(), "PRAGMA user_version = 7; CREATE TABLE later(a)");
  EXPECT_TRUE(execute_once(*opened(), "k", random_));
}

TEST_F(SqliteStoreTest, AnUpgradeUnderARunningProcessStopsItsWritesAndSaysWhy) {
  auto store = opened();
  ASSERT_TRUE(execute_once(*store, "k", random_));
  run_sql(directory_.file(), "UPDATE meta SET value = 7 WHERE name = 'oldest_writer'");
  auto refused = claim(*store, "new", random_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::incompatible);
  EXPECT_EQ(run_sql(directory_.file(), "SELECT count(*) FROM record"), "1");
}

TEST_F(SqliteStoreTest, AFileThatThisUserMayNotWriteIsRefused) {
  opened().reset();
  ASSERT_EQ(chmod(directory_.file().c_str(), 0444), 0);
  const bool root = geteuid() == 0;
  ASSERT_EQ(seteuid(root ? 65534 : geteuid()), 0);  // root may write everywhere
  auto refused = open();
  ASSERT_EQ(seteuid(root ? 0 : geteuid()), 0);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().code == ErrorCode::invalid) << refused.error().message;
  EXPECT_NE(refused.error().message.find(directory_.file()), std::string::npos);
}

// --- other processes

TEST_F(SqliteStoreTest, AWriteLockHeldElsewhereIsUnavailableInTimeAndNothingIsExecuted) {
  SqliteOptions options;
  options.busy_limit = 100ms;
  auto store = opened(options);
  ASSERT_TRUE(execute_once(*store, "done", random_));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(directory_.file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);

  const auto begun = std::chrono::steady_clock::now();
  auto refused = claim(*store, "new", random_);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 1s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable) << refused.error().message;
  auto replayed = claim(*store, "done", random_);
  ASSERT_TRUE(replayed);
  EXPECT_TRUE(std::holds_alternative<decision::Replay>(*replayed));

  ASSERT_EQ(sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_EQ(run_sql(directory_.file(), "SELECT count(*) FROM record"), "1");
  EXPECT_TRUE(execute_once(*store, "new", random_));
}

TEST_F(SqliteStoreTest, AReplayIsAnsweredWhileTheWriterWaitsForAnotherProcess) {
  SqliteOptions options;
  options.busy_limit = 20s;
  auto store = opened(options);
  ASSERT_TRUE(execute_once(*store, "done", random_));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(directory_.file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  std::thread waiting([&] { EXPECT_TRUE(execute_once(*store, "new", random_)); });
  for (int i = 0; i < 20; ++i) {
    auto replayed = claim(*store, "done", random_);
    ASSERT_TRUE(replayed);
    EXPECT_TRUE(std::holds_alternative<decision::Replay>(*replayed));
  }
  ASSERT_EQ(sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  waiting.join();
}

TEST_F(SqliteStoreTest, WhatAnotherProcessDoesIsSeenAndAnnouncedWhileSomebodyWaits) {
  auto mine = opened();
  auto theirs = opened();
  std::atomic<int> announced = 0;
  mine->on_foreign_change([&] { ++announced; });
  auto claimed = claim(*mine, "k", random_);
  const Record record = std::get<decision::Execute>(*claimed).record;
  mine->await_foreign_changes(true);
  auto settled = ask_transition(
      *theirs, {pay_scope("k"), settle_of(record.generation, record.owner, "b"), nullptr, {}});
  ASSERT_TRUE(settled && std::holds_alternative<decision::Ok>(*settled));
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (announced == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_GT(announced, 0);
  mine->await_foreign_changes(false);
  // The row that this process remembers as processing is not so any more.
  auto late = ask_transition(
      *mine, {pay_scope("k"), settle_of(record.generation, record.owner, "c"), nullptr, {}});
  ASSERT_TRUE(late && std::holds_alternative<decision::Ok>(*late));
  EXPECT_EQ(std::get<decision::Ok>(*late).record->result->body, "b");
  mine->on_foreign_change({});
}

TEST_F(SqliteStoreTest, AFileReplacedByAnOlderCopyHandsOutNoGenerationTwice) {
  auto store = opened();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(execute_once(*store, "k" + std::to_string(i), random_));
  run_sql(directory_.file(), "UPDATE counter SET generation = 2");  // as a restore would
  auto refused = claim(*store, "new", random_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::incompatible) << refused.error().message;
  ASSERT_TRUE(ask(*store, request::AdvanceGenerations{{"operator", "restored"}}));
  auto claimed = claim(*store, "new", random_);
  ASSERT_TRUE(claimed) << claimed.error().message;
  EXPECT_GT(number(std::get<decision::Execute>(*claimed).record.generation), 5u);
}

// --- time

TEST_F(SqliteStoreTest, LeasesEndByTheBootClockWhateverTheWallClockDoes) {
  auto store = opened();
  ASSERT_TRUE(claim(*store, "k", random_));
  clock_.jump_wall(-1h);
  clock_.advance(29s);
  EXPECT_TRUE(std::holds_alternative<decision::InProgress>(claim(*store, "k", random_).value()));
  clock_.advance(1s);
  EXPECT_TRUE(std::holds_alternative<decision::Uncertain>(claim(*store, "k", random_).value()));
}

TEST_F(SqliteStoreTest, APauseOfExpiryOutlivesTheProcessThatNoticedTheJump) {
  {
    auto store = opened();
    ASSERT_TRUE(execute_once(*store, "k", random_));
    clock_.jump_wall(48h);
    EXPECT_TRUE(std::holds_alternative<decision::Replay>(claim(*store, "k", random_).value()));
  }
  auto store = opened();
  EXPECT_TRUE(std::holds_alternative<decision::Replay>(claim(*store, "k", random_).value()));
  ASSERT_TRUE(ask(*store, request::AcceptTime{{"operator", "the clock is right"}}));
  EXPECT_TRUE(std::holds_alternative<decision::Execute>(claim(*store, "k", random_).value()));
}

// --- damage

class SqliteDamage : public SqliteStoreTest,
                     public ::testing::WithParamInterface<std::pair<const char*, ErrorCode>> {};

TEST_P(SqliteDamage, IsReportedAndNeverTakenForAnAbsentRecord) {
  auto store = opened();
  ASSERT_TRUE(execute_once(*store, "k", random_));
  ASSERT_TRUE(execute_once(*store, "sound", random_));
  const auto& [change, code] = GetParam();
  run_sql(directory_.file(), "PRAGMA ignore_check_constraints = ON; UPDATE record SET " +
                                 std::string(change) + " WHERE key = 'k'");
  auto refused = claim(*store, "k", random_);
  ASSERT_FALSE(refused) << "answered with " << refused->index();
  EXPECT_EQ(refused.error().code, code) << refused.error().message;
  EXPECT_EQ(refused.error().message.find("alice"), std::string::npos);
  auto read = ask(*store, request::ReadScope{pay_scope("k"), true});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, code);
  EXPECT_TRUE(std::holds_alternative<decision::Replay>(claim(*store, "sound", random_).value()));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, SqliteDamage,
    ::testing::Values(std::pair("state = 9", ErrorCode::incompatible),
                      std::pair("after_expiry = 3", ErrorCode::incompatible),
                      std::pair("on_lease_expiry = 0", ErrorCode::incompatible),
                      std::pair("cause = 77", ErrorCode::incompatible),
                      std::pair("settled_by = 9", ErrorCode::incompatible),
                      std::pair("owner = zeroblob(3)", ErrorCode::corrupt),
                      std::pair("fingerprint = zeroblob(31)", ErrorCode::corrupt),
                      std::pair("operation_id = zeroblob(0)", ErrorCode::corrupt),
                      std::pair("generation = -1", ErrorCode::corrupt),
                      std::pair("profile = 4711", ErrorCode::corrupt),
                      std::pair("result = 4711", ErrorCode::corrupt)));

// --- the file stays small

TEST_F(SqliteStoreTest, TheWalStartsAgainAndDoesNotGrowWithoutEnd) {
  SqliteOptions options;
  options.checkpoint_bytes = 100'000;
  options.wal_limit_bytes = 400'000;
  auto store = opened(options);
  for (int i = 0; i < 1500; ++i) {
    ASSERT_TRUE(execute_once(*store, "k" + std::to_string(i), random_));
  }
  struct stat wal {};
  ASSERT_EQ(stat((directory_.file() + "-wal").c_str(), &wal), 0);
  // Some forty times as much was written. A helper that gets no turn lets it grow by a few limits.
  EXPECT_LT(wal.st_size, 2'400'000);
  expect_sound(directory_.file());
}

TEST_F(SqliteStoreTest, RecordsFindableByIdAreFoundAtOnceAndOthersBySearch) {
  auto store = opened();
  event::Claim hidden = new_claim(random_);
  request::Transition transition{pay_scope("hidden"), hidden, nullptr, {}};
  transition.findable_by_id = false;
  ASSERT_TRUE(ask_transition(*store, transition));
  const auto found = [&](bool search) {
    auto read = ask(*store, request::ReadOperation{hidden.operation_id, true, search});
    return std::get<answer::Found>(read.value()).record.has_value();
  };
  EXPECT_FALSE(found(false));
  EXPECT_TRUE(found(true));
}

TEST_F(SqliteStoreTest, TheAgendaIsEnteredInStepsAndMissesNothing) {
  auto store = opened();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(execute_once(*store, "a" + std::to_string(i), random_));
  ASSERT_TRUE(claim(*store, "slow", random_));
  ASSERT_TRUE(ask(*store, request::Overdue{}));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(execute_once(*store, "b" + std::to_string(i), random_));
  expect_sound(directory_.file());
  clock_.advance(25h);
  std::size_t removed = 0;
  for (bool more = true; more;) {
    auto swept = ask(*store, request::Sweep{30});
    ASSERT_TRUE(swept) << swept.error().message;
    removed += std::get<answer::Moved>(*swept).changed;
    more = std::get<answer::Moved>(*swept).more;
  }
  EXPECT_EQ(removed, 100u);
  EXPECT_EQ(run_sql(directory_.file(), "SELECT count(*) FROM result"), "0");
  expect_sound(directory_.file());
}

}  // namespace
}  // namespace einmal::testing
