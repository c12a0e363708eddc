#include "einmal/sqlite/sqlite_store.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace einmal {
namespace {

namespace fs = std::filesystem;

class SqliteStoreTest : public ::testing::Test {
 protected:
  SqliteStoreTest() {
    std::string name = (fs::temp_directory_path() / "einmal-sqlite-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~SqliteStoreTest() override { fs::remove_all(directory_); }

  std::unique_ptr<Store> open() {
    auto store = open_sqlite_store((directory_ / "a.db").string(), {}, clock_, random_);
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  static Scope scope(const std::string& key) { return *Scope::make("app", "alice", "pay", key); }
  event::Claim claim(std::uint8_t body = 1) {
    event::Claim claim;
    claim.fingerprint.digest[0] = body;
    claim.policies.lease = std::chrono::seconds(30);
    claim.owner = OwnerToken::draw(random_);
    claim.operation_id = OperationId::draw(random_);
    return claim;
  }
  static event::Settle settle(const Record& record, std::string body) {
    event::Settle settle;
    settle.generation = record.generation;
    settle.owner = record.owner;
    settle.result.status = 201;
    settle.result.body = std::move(body);
    return settle;
  }

  fs::path directory_;
  SystemClock clock_;
  SystemRandom random_;
};

TEST_F(SqliteStoreTest, AClaimIsCompletedAndReplayedAlsoByTheNextProcess) {
  {
    auto store = open();
    auto claimed = ask_transition(*store, {scope("k"), claim(), nullptr, {}});
    ASSERT_TRUE(claimed) << claimed.error().message;
    const auto* execute = std::get_if<decision::Execute>(&*claimed);
    ASSERT_NE(execute, nullptr);
    EXPECT_EQ(number(execute->record.generation), 1u);

    auto again = ask_transition(*store, {scope("k"), claim(), nullptr, {}});
    ASSERT_TRUE(again);
    EXPECT_TRUE(std::holds_alternative<decision::InProgress>(*again));

    auto settled =
        ask_transition(*store, {scope("k"), settle(execute->record, "made"), nullptr, {}});
    ASSERT_TRUE(settled) << settled.error().message;
    EXPECT_TRUE(std::holds_alternative<decision::Ok>(*settled));
  }
  auto store = open();
  auto replayed = ask_transition(*store, {scope("k"), claim(), nullptr, {}});
  ASSERT_TRUE(replayed) << replayed.error().message;
  const auto* replay = std::get_if<decision::Replay>(&*replayed);
  ASSERT_NE(replay, nullptr);
  EXPECT_EQ(replay->record.result->body, "made");

  auto other = ask_transition(*store, {scope("k"), claim(2), nullptr, {}});
  EXPECT_TRUE(std::holds_alternative<decision::Mismatch>(other.value()));
}

}  // namespace
}  // namespace einmal
