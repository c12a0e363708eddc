#include "einmal/sqlite/sqlite_fixture.hpp"
#include "einmal/testing/store_contract.hpp"

namespace einmal::testing {
namespace {

/// Looks after each test whether the file is in order.
class SqliteHome final : public StoreHome {
 public:
  explicit SqliteHome(const Clock& clock) : clock_(clock) {}
  ~SqliteHome() override { expect_sound(directory_.file()); }

  std::unique_ptr<Store> open() override {
    auto store = open_sqlite_store(directory_.file(), {}, clock_, random_);
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }

 private:
  const Clock& clock_;
  SystemRandom random_;
  TemporaryDirectory directory_;
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
