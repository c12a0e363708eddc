#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "einmal/core/clock_guard.hpp"
#include "einmal/core/record.hpp"
#include "einmal/sqlite_file/connection.hpp"
#include "einmal/sqlite_file/statement.hpp"

namespace einmal::sqlite {

/// The few rows that are not about a record: secrets, the generation counter, the clock guard, and
/// one row for each open store that says which of its batches was committed last.
class MetaTable {
 public:
  static Result<MetaTable> prepare(sqlite_file::Connection& connection);

  /// The secret of that name; draws and keeps it if there is none. Outside of a transaction.
  Result<Bytes> secret(std::string_view name, std::size_t size, Random& random);
  /// The oldest schema version that may write to this file.
  Result<std::int64_t> oldest_writer();

  /// The last generation handed out.
  Result<std::int64_t> generation();
  Result<void> set_generation(std::int64_t last);

  Result<ClockGuard::State> clock();
  Result<void> set_clock(const ClockGuard::State& state);

  /// The last batch of that writer; nothing if it has no row.
  Result<std::optional<std::int64_t>> last_batch(std::int64_t writer);
  Result<void> set_batch(std::int64_t writer, std::int64_t batch, WallTime now);
  Result<void> remove_writer(std::int64_t writer);

  /// Differs from the last answer exactly when another connection has committed since.
  Result<std::int64_t> data_version();

 private:
  explicit MetaTable(sqlite_file::Connection& connection) : connection_(&connection) {}

  sqlite_file::Connection* connection_;
  sqlite_file::Statement read_, add_, generation_, set_generation_, clock_, set_clock_, batch_,
      set_batch_, remove_writer_, data_version_;
};

}  // namespace einmal::sqlite
