#include "einmal/sqlite/record_table.hpp"

#include "einmal/sqlite/sqlite_fixture.hpp"
#include "einmal/sqlite/store_file.hpp"

namespace einmal::sqlite {
namespace {

/// One bit of digest: nearly every scope collides with half of the others.
class CollidingScopes : public ::testing::Test {
 protected:
  CollidingScopes() {
    auto opened = open_store_file({directory_.file(), {}, 1024}, random_);
    EXPECT_TRUE(opened) << opened.error().message;
    file_ = std::move(*opened);
  }

  Record record(std::uint64_t generation) {
    Record record;
    record.generation = Generation{generation};
    record.owner = OwnerToken::draw(random_);
    record.operation_id = OperationId::draw(random_);
    return record;
  }
  Row find(const Scope& scope) {
    auto found = file_->records->find(digests_.of(scope), scope, Load::whole);
    EXPECT_TRUE(found) << found.error().message;
    return std::move(*found);
  }
  void put(Row& row, const Scope& scope, const Record& record) {
    const auto done = file_->records->put(row, digests_.of(scope), scope, record);
    EXPECT_TRUE(done) << done.error().message;
  }

  testing::TemporaryDirectory directory_;
  SystemRandom random_;
  const ScopeDigests digests_{"0123456789abcdef", 1};
  std::unique_ptr<StoreFile> file_;
};

TEST_F(CollidingScopes, AreToldApartByTheirParts) {
  constexpr std::uint64_t count = 40;
  std::vector<Record> records;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Scope scope = testing::pay_scope(std::to_string(i));
    Row row = find(scope);
    ASSERT_FALSE(row.record) << i << " was taken for another";
    put(row, scope, records.emplace_back(record(i + 1)));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(find(testing::pay_scope(std::to_string(i))).record, records[i]);
  }
  for (std::uint64_t i = 0; i < count; i += 3) {  // gaps, among them the first place
    Row row = find(testing::pay_scope(std::to_string(i)));
    ASSERT_TRUE(file_->records->erase(row));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const Scope scope = testing::pay_scope(std::to_string(i));
    Row row = find(scope);
    ASSERT_EQ(row.record.has_value(), i % 3 != 0);
    if (row.record) continue;
    put(row, scope, record(100 + i));
    EXPECT_EQ(number(find(scope).record->generation), 100 + i);
  }
}

}  // namespace
}  // namespace einmal::sqlite
