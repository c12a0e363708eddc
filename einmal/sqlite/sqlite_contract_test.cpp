#include <unistd.h>

#include <filesystem>

#include "einmal/sqlite/sqlite_store.hpp"
#include "einmal/testing/store_contract.hpp"

namespace einmal::testing {
namespace {

namespace fs = std::filesystem;

class SqliteHome final : public StoreHome {
 public:
  explicit SqliteHome(const Clock& clock) : clock_(clock) {
    std::string name = (fs::temp_directory_path() / "einmal-contract-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~SqliteHome() override { fs::remove_all(directory_); }

  std::unique_ptr<Store> open() override {
    auto store = open_sqlite_store((directory_ / "store.db").string(), {}, clock_, random_);
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }

 private:
  const Clock& clock_;
  SystemRandom random_;
  fs::path directory_;
};

StoreFactory sqlite_factory() {
  StoreFactory factory;
  factory.name = "Sqlite";
  factory.make = [](VirtualClock& clock) { return std::make_unique<SqliteHome>(clock); };
  factory.several_at_once = true;
  factory.tells_of_foreign_changes = true;
  factory.audit_retention = SqliteOptions{}.audit_retention;
  return factory;
}

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContract, ::testing::Values(sqlite_factory()),
                         StoreFactoryName());
INSTANTIATE_TEST_SUITE_P(Sqlite, RandomCommands, ::testing::Values(sqlite_factory()),
                         StoreFactoryName());

}  // namespace
}  // namespace einmal::testing
