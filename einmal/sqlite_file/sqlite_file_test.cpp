#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "einmal/sqlite_file/connection.hpp"
#include "einmal/sqlite_file/schema.hpp"
#include "einmal/sqlite_file/transaction.hpp"

namespace einmal::sqlite_file {
namespace {

namespace fs = std::filesystem;

constexpr const char* steps[] = {"CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)",
                                 "ALTER TABLE note ADD COLUMN seen INTEGER"};
constexpr FileKind first_kind{0x1234, "notebook", {steps, 1}};
constexpr FileKind second_kind{0x1234, "notebook", {steps, 2}};

class SqliteFile : public ::testing::Test {
 protected:
  SqliteFile() {
    std::string name = (fs::temp_directory_path() / "einmal-sqlite-file-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~SqliteFile() override { fs::remove_all(directory_); }

  std::string path(const char* name = "a.db") const { return (directory_ / name).string(); }

  Result<std::unique_ptr<Connection>> open(const FileKind& kind = first_kind,
                                           Duration busy_limit = std::chrono::seconds(2),
                                           bool create = true) {
    ConnectionOptions options;
    options.path = path();
    options.kind = kind;
    options.busy_limit = busy_limit;
    options.create = create;
    return Connection::open(options, random_);
  }

  void foreign(const char* sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  }

  fs::path directory_;
  SystemRandom random_;
};

TEST_F(SqliteFile, EveryConnectionIsDurableWalWithForeignKeysAndNoCheckpointOfItsOwn) {
  auto connection = open();
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ((*connection)->query_integer("PRAGMA synchronous").value(), 2);
  EXPECT_EQ((*connection)->query_integer("PRAGMA foreign_keys").value(), 1);
  EXPECT_EQ((*connection)->query_integer("PRAGMA wal_autocheckpoint").value(), 0);
  auto mode = (*connection)->prepare("PRAGMA journal_mode");
  ASSERT_TRUE(mode->step().value());
  EXPECT_EQ(mode->bytes(0), "wal");
}

TEST_F(SqliteFile, TheSchemaIsMadeOnceAndBroughtUpToDate) {
  {
    auto connection = open(first_kind);
    EXPECT_EQ(ensure_schema(**connection).value(), 1);
    ASSERT_TRUE((*connection)->execute("INSERT INTO note(text) VALUES ('kept')"));
  }
  auto connection = open(second_kind);
  EXPECT_EQ(ensure_schema(**connection).value(), 2);
  EXPECT_EQ(ensure_schema(**connection).value(), 2);
  EXPECT_EQ((*connection)->query_integer("SELECT count(*) FROM note WHERE seen IS NULL").value(),
            1);
}

TEST_F(SqliteFile, AVersionFromTheFutureIsReportedAndNotTouched) {
  {
    auto connection = open(second_kind);
    ASSERT_EQ(ensure_schema(**connection).value(), 2);
  }
  auto connection = open(first_kind);
  auto found = ensure_schema(**connection);
  EXPECT_EQ(found.value(), 2);
  const Error refusal = newer_version(**connection, *found);
  EXPECT_EQ(refusal.code, ErrorCode::incompatible);
  EXPECT_NE(refusal.message.find(path()), std::string::npos);
}

TEST_F(SqliteFile, AnotherProgramsDatabaseIsRefusedAndStaysAsItWas) {
  foreign("CREATE TABLE theirs(a); INSERT INTO theirs VALUES (1)");
  std::ifstream before_file(path(), std::ios::binary);
  const std::string before(std::istreambuf_iterator<char>(before_file), {});
  auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::incompatible);
  std::ifstream after_file(path(), std::ios::binary);
  const std::string after(std::istreambuf_iterator<char>(after_file), {});
  EXPECT_EQ(before, after);
}

TEST_F(SqliteFile, WhatIsNoDatabaseIsRefused) {
  std::ofstream(path()) << std::string(5000, 'x');
  auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::incompatible);
  EXPECT_NE(refused.error().message.find(path()), std::string::npos);
}

TEST_F(SqliteFile, AMissingDirectoryAMissingFileAndADirectoryAreNamed) {
  ConnectionOptions options;
  options.kind = first_kind;
  options.path = path("none/a.db");
  auto no_directory = Connection::open(options, random_);
  ASSERT_FALSE(no_directory);
  EXPECT_EQ(no_directory.error().code, ErrorCode::invalid);
  EXPECT_NE(no_directory.error().message.find(path("none")), std::string::npos);

  auto no_file = open(first_kind, std::chrono::seconds(1), false);
  ASSERT_FALSE(no_file);
  EXPECT_EQ(no_file.error().code, ErrorCode::invalid);

  options.path = directory_.string();
  auto directory = Connection::open(options, random_);
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code, ErrorCode::invalid);
}

TEST_F(SqliteFile, AWriteLockHeldElsewhereIsUnavailableWithinTheLimit) {
  auto holder = open();
  ASSERT_EQ(ensure_schema(**holder).value(), 1);
  auto waiter = open(first_kind, std::chrono::milliseconds(50));
  auto holding = TransactionControl::prepare(**holder);
  auto waiting = TransactionControl::prepare(**waiter);
  ASSERT_TRUE(holding->begin_write());
  const auto refused = waiting->begin_write();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_FALSE((*waiter)->in_transaction());
  ASSERT_TRUE(holding->commit());
  EXPECT_TRUE(waiting->begin_write());
}

TEST_F(SqliteFile, ATransactionThatIsLeftIsRolledBack) {
  auto connection = open();
  ASSERT_TRUE(ensure_schema(**connection));
  auto control = TransactionControl::prepare(**connection);
  {
    Transaction transaction(*control);
    ASSERT_TRUE(transaction.begin_write());
    ASSERT_TRUE((*connection)->execute("INSERT INTO note(text) VALUES ('gone')"));
  }
  EXPECT_FALSE((*connection)->in_transaction());
  EXPECT_EQ((*connection)->query_integer("SELECT count(*) FROM note").value(), 0);
}

TEST_F(SqliteFile, AFullDatabaseIsUnavailableAndSaysSo) {
  auto connection = open();
  ASSERT_TRUE(ensure_schema(**connection));
  ASSERT_TRUE((*connection)->query_integer("PRAGMA max_page_count = 4"));
  const auto full = (*connection)->execute("INSERT INTO note(text) VALUES (zeroblob(100000))");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::unavailable);
  EXPECT_NE(full.error().message.find("full"), std::string::npos);
}

}  // namespace
}  // namespace einmal::sqlite_file
