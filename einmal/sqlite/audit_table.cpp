#include "einmal/sqlite/audit_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "einmal/sqlite/columns.hpp"

namespace einmal::sqlite {

using sqlite_file::Connection;
using sqlite_file::ResetAtEnd;
using sqlite_file::Statement;

namespace {

#define EINMAL_AUDIT_COLUMNS                                                                    \
  "id, at, namespace, caller, operation, key, operation_id, event, generation, before, after, " \
  "late_outcome, late_result, contradicts, who, evidence"

enum Column : int {
  id,
  at,
  name_space,
  caller,
  operation,
  key,
  operation_id,
  event,
  generation,
  before,
  after,
  late_outcome,
  late_result,
  contradicts,
  who,
  evidence
};

void bind_state(Statement& statement, int parameter, const std::optional<State>& state) {
  state ? statement.bind(parameter, static_cast<std::int64_t>(*state))
        : statement.bind_null(parameter);
}

std::optional<State> state_in(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return static_cast<State>(row.integer(column));
}

}  // namespace

Result<AuditTable> AuditTable::prepare(Connection& connection, RecordTable& records) {
  AuditTable table(connection, records);
  Preparer prepare(connection);
  prepare(
      table.add_,
      "INSERT INTO audit (scope_digest, at, namespace, caller, operation, key, operation_id, "
      "event, generation, before, after, late_outcome, late_result, contradicts, who, evidence) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)");
  prepare(table.old_, "SELECT id, late_result FROM audit WHERE at <= ?1 ORDER BY at LIMIT ?2");
  prepare(table.drop_, "DELETE FROM audit WHERE id = ?1");
  prepare(table.by_scope_,
          "SELECT " EINMAL_AUDIT_COLUMNS " FROM audit WHERE scope_digest = ?1 ORDER BY id DESC");
  prepare(table.by_operation_,
          "SELECT " EINMAL_AUDIT_COLUMNS " FROM audit WHERE operation_id = ?1 ORDER BY id DESC");
  prepare(table.all_, "SELECT " EINMAL_AUDIT_COLUMNS " FROM audit ORDER BY id DESC");
  if (auto failed = prepare.failed()) return failure(failed->code, failed->message);
  return table;
}

Result<void> AuditTable::add(std::int64_t digest, const AuditRow& row) {
  std::int64_t result_id = 0;
  if (row.audit.late_result) {
    auto added = records_->add_result(*row.audit.late_result);
    if (!added) return pass_on(added);
    result_id = *added;
  }
  add_.bind(1, digest);
  add_.bind(2, as_integer(row.at));
  // An event of the whole store names no scope: all four parts are empty.
  add_.bind_text(3, row.scope ? BytesView(row.scope->name_space()) : BytesView());
  add_.bind_text(4, row.scope ? BytesView(row.scope->caller()) : BytesView());
  add_.bind_text(5, row.scope ? BytesView(row.scope->operation()) : BytesView());
  add_.bind_text(6, row.scope ? BytesView(row.scope->key()) : BytesView());
  add_.bind_blob(7, row.operation_id.bytes());
  add_.bind(8, static_cast<std::int64_t>(row.audit.event));
  add_.bind(9, static_cast<std::int64_t>(number(row.audit.generation)));
  bind_state(add_, 10, row.audit.before);
  bind_state(add_, 11, row.audit.after);
  row.audit.late_outcome ? add_.bind(12, static_cast<std::int64_t>(*row.audit.late_outcome))
                         : add_.bind_null(12);
  result_id != 0 ? add_.bind(13, result_id) : add_.bind_null(13);
  add_.bind(14, row.audit.contradicts ? 1 : 0);
  add_.bind_text(15, row.actor.who);
  add_.bind_text(16, row.actor.evidence);
  return add_.run();
}

Result<std::size_t> AuditTable::drop_before(WallTime end, std::size_t limit) {
  struct Old {
    std::int64_t id, result;
  };
  std::vector<Old> olds;
  {
    ResetAtEnd reset(old_);
    old_.bind(1, as_integer(end));
    old_.bind(2, static_cast<std::int64_t>(limit));
    while (true) {
      auto row = old_.step();
      if (!row) return pass_on(row);
      if (!*row) break;
      olds.push_back({old_.integer(0), old_.integer(1)});
    }
  }
  for (const Old& old : olds) {
    if (old.result != 0) {
      if (auto dropped = records_->drop_result(old.result); !dropped) return pass_on(dropped);
    }
    drop_.bind(1, old.id);
    if (auto dropped = drop_.run(); !dropped) return pass_on(dropped);
  }
  return olds.size();
}

Result<std::vector<AuditRow>> AuditTable::read(const std::optional<std::int64_t>& digest,
                                               const std::optional<Scope>& scope,
                                               const std::optional<OperationId>& operation,
                                               std::size_t limit) {
  std::vector<AuditRow> rows;
  Statement& statement = scope ? by_scope_ : operation ? by_operation_ : all_;
  ResetAtEnd reset(statement);
  if (scope) statement.bind(1, digest.value_or(0));
  if (!scope && operation) statement.bind_blob(1, operation->bytes());
  while (rows.size() < limit) {
    auto row = statement.step();
    if (!row) return pass_on(row);
    if (!*row) break;
    auto decoded = decode(statement);
    if (!decoded) return pass_on(decoded);
    const bool matches =
        (!scope || decoded->scope == *scope) && (!operation || decoded->operation_id == *operation);
    if (matches) rows.push_back(std::move(*decoded));
  }
  std::reverse(rows.begin(), rows.end());
  return rows;
}

Result<AuditRow> AuditTable::decode(const Statement& row) {
  std::optional<Scope> of;
  if (!row.bytes(key).empty()) {
    auto scope = Scope::make(std::string(row.bytes(name_space)), std::string(row.bytes(caller)),
                             std::string(row.bytes(operation)), std::string(row.bytes(key)));
    if (scope) of = std::move(*scope);
  }
  const auto id_of_operation = OperationId::from_bytes(row.bytes(operation_id));
  if ((!of && !row.bytes(key).empty()) || !id_of_operation) {
    return failure(ErrorCode::corrupt, fmt::format("{}: audit row {} is damaged",
                                                   connection_->path(), row.integer(id)));
  }
  Audit audit;
  audit.event = static_cast<AuditEvent>(row.integer(event));
  audit.generation = Generation{static_cast<std::uint64_t>(row.integer(generation))};
  audit.before = state_in(row, before);
  audit.after = state_in(row, after);
  if (!row.is_null(late_outcome)) {
    audit.late_outcome = static_cast<event::Final>(row.integer(late_outcome));
  }
  audit.contradicts = row.integer(contradicts) != 0;
  if (!row.is_null(late_result)) {
    auto late = records_->result(row.integer(late_result), Load::whole);
    if (!late) return pass_on(late);
    audit.late_result = std::move(*late);
  }
  return AuditRow{wall_time(row.integer(at)), std::move(of), *id_of_operation, std::move(audit),
                  Actor{std::string(row.bytes(who)), std::string(row.bytes(evidence))}};
}

}  // namespace einmal::sqlite
