#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "einmal/sqlite/record_table.hpp"
#include "einmal/store/store.hpp"

namespace einmal::sqlite {

/// The table `audit`: what was done to records outside the ordinary road, and late results. It
/// outlives the records and has a retention of its own.
class AuditTable {
 public:
  static Result<AuditTable> prepare(sqlite_file::Connection& connection, RecordTable& records);

  /// Inside a write transaction, as is `drop_before`.
  Result<void> add(std::int64_t digest, const AuditRow& row);
  /// Removes up to `limit` rows older than `end`; returns how many.
  Result<std::size_t> drop_before(WallTime end, std::size_t limit);

  /// The newest `limit` rows that match, newest last. `digest` belongs to `scope`.
  Result<std::vector<AuditRow>> read(const std::optional<std::int64_t>& digest,
                                     const std::optional<Scope>& scope,
                                     const std::optional<OperationId>& id, std::size_t limit);

 private:
  AuditTable(sqlite_file::Connection& connection, RecordTable& records)
      : connection_(&connection), records_(&records) {}
  Result<AuditRow> decode(const sqlite_file::Statement& row);

  sqlite_file::Connection* connection_;
  RecordTable* records_;
  sqlite_file::Statement add_, old_, drop_, by_scope_, by_operation_, all_;
};

}  // namespace einmal::sqlite
