#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "einmal/core/record.hpp"
#include "einmal/core/scope.hpp"
#include "einmal/sqlite/agenda.hpp"
#include "einmal/sqlite/profile_table.hpp"
#include "einmal/sqlite/scope_digest.hpp"
#include "einmal/sqlite_file/connection.hpp"
#include "einmal/sqlite_file/statement.hpp"

namespace einmal::sqlite {

/// A record and where it is kept. Without `record`: the scope is absent, and `nth` is the place a
/// new row would take among the rows of an equal digest.
struct Row {
  std::int64_t id = 0;
  std::int64_t nth = 0;
  std::int64_t result_id = 0;  ///< 0: no result.
  bool findable_by_id = false;
  std::optional<Record> record;
};

enum class Load : std::uint8_t { without_result, without_body, whole };

/// The tables `record` and `result` through one connection. Rows that this version does not
/// understand are `incompatible`, rows that contradict themselves `corrupt`: never absent.
class RecordTable {
 public:
  static Result<RecordTable> prepare(sqlite_file::Connection& connection, ProfileTable& profiles,
                                     Agenda& agenda);

  Result<Row> find(std::int64_t digest, const Scope& scope, Load load);

  /// Writes `record` in the place of what `row` describes; `row` then describes it. A record of
  /// another operation id takes a new row. Inside a write transaction, as is `erase`.
  Result<void> put(Row& row, std::int64_t digest, const Scope& scope, Record record);
  Result<void> erase(Row& row);

  using Located = std::pair<Row, Scope>;
  Result<std::optional<Located>> by_id(std::int64_t id);
  /// Only among the records that are findable by id.
  Result<std::optional<Located>> by_operation(const OperationId& id, bool with_body);
  /// The first row of a statement that selects `columns()`, with its result; resets the statement.
  Result<std::optional<Located>> located(sqlite_file::Statement& statement, bool with_body);

  /// Results by themselves, for the audit.
  Result<std::int64_t> add_result(const StoredResult& result);
  Result<void> drop_result(std::int64_t id);
  Result<StoredResult> result(std::int64_t id, Load load);

  /// The columns `decode` reads, in their order.
  static const char* columns();
  /// Decodes a row of `columns()` without its result.
  Result<Row> decode(const sqlite_file::Statement& row);
  /// The scope in a row of `columns()`.
  Result<Scope> decode_scope(const sqlite_file::Statement& row);

 private:
  RecordTable(sqlite_file::Connection& connection, ProfileTable& profiles, Agenda& agenda)
      : connection_(&connection), profiles_(&profiles), agenda_(&agenda) {}
  Result<void> insert(Row& row, std::int64_t digest, const Scope& scope, const Record& record);
  Result<void> update(Row& row, const Record& record);
  Result<void> put_result(Row& row, const Record& record);
  Result<void> bind_record(sqlite_file::Statement& statement, const Record& record,
                           std::int64_t result_id);
  tl::unexpected<Error> damaged(ErrorCode code, std::int64_t id, const char* what) const;

  sqlite_file::Connection* connection_;
  ProfileTable* profiles_;
  Agenda* agenda_;
  sqlite_file::Statement find_, insert_, update_, settle_, erase_, add_result_, drop_result_,
      result_, result_head_, by_id_, by_operation_, add_operation_, drop_operation_;
};

}  // namespace einmal::sqlite
