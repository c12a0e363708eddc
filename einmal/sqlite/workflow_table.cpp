#include "einmal/sqlite/workflow_table.hpp"

#include "einmal/sqlite/columns.hpp"

namespace einmal::sqlite {

using sqlite_file::Connection;
using sqlite_file::ResetAtEnd;
using sqlite_file::Statement;

namespace {

#define EINMAL_WORKFLOW_COLUMNS                                                              \
  "id, namespace, caller, operation, key, definition, name, input, journal, fence, worker, " \
  "stopped, generation, owner, due, due_boot"

// Rows of another boot are due, and were so longer than any of this one. Each part of the UNION
// walks its own range of the index.
constexpr const char* due_sql =
    "SELECT " EINMAL_WORKFLOW_COLUMNS
    " FROM (SELECT *, 0 AS here FROM workflow WHERE stopped = 0 AND definition = ?1 AND "
    "due_boot < ?2 UNION ALL SELECT *, 0 FROM workflow WHERE stopped = 0 AND definition = ?1 AND "
    "due_boot > ?2 UNION ALL SELECT *, 1 FROM workflow WHERE stopped = 0 AND definition = ?1 AND "
    "due_boot = ?2 AND due <= ?3) ORDER BY here, due, id LIMIT ?4";

constexpr const char* count_sql =
    "SELECT definition, count(*), "
    "coalesce(sum(stopped = 0 AND (due_boot <> ?1 OR due <= ?2)), 0), sum(stopped) "
    "FROM workflow GROUP BY definition ORDER BY definition";

template <class Id>
Id id_from(BytesView bytes) {
  return Id::from_bytes(bytes).value_or(Id());
}

}  // namespace

Result<WorkflowTable> WorkflowTable::prepare(Connection& connection) {
  WorkflowTable table(connection);
  Preparer prepare(connection);
  prepare(table.add_, "INSERT OR IGNORE INTO workflow (" EINMAL_WORKFLOW_COLUMNS
                      ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
                      "?15, ?16)");
  prepare(table.find_, "SELECT " EINMAL_WORKFLOW_COLUMNS " FROM workflow WHERE id = ?1");
  prepare(table.due_, due_sql);
  prepare(table.update_,
          "UPDATE workflow SET journal = ?2, fence = ?3, worker = ?4, stopped = ?5, due = ?6, "
          "due_boot = ?7 WHERE id = ?1");
  prepare(table.erase_, "DELETE FROM workflow WHERE id = ?1");
  prepare(table.count_, count_sql);
  if (auto failed = prepare.failed()) return failure(failed->code, failed->message);
  return table;
}

Result<void> WorkflowTable::add(const KeptWorkflow& workflow) {
  ResetAtEnd reset(add_);
  const WorkflowRow& row = workflow.row;
  add_.bind_blob(1, row.id.bytes());
  add_.bind_text(2, row.scope.name_space());
  add_.bind_text(3, row.scope.caller());
  add_.bind_text(4, row.scope.operation());
  add_.bind_text(5, row.scope.key());
  add_.bind_text(6, row.definition);
  add_.bind_text(7, row.name);
  add_.bind_blob(8, row.input);
  add_.bind_blob(9, row.journal);
  add_.bind(10, static_cast<std::int64_t>(row.fence));
  add_.bind_blob(11, workflow.worker.bytes());
  add_.bind(12, row.stopped ? 1 : 0);
  add_.bind(13, static_cast<std::int64_t>(number(row.generation)));
  add_.bind_blob(14, row.owner.bytes());
  add_.bind(15, workflow.until.end.time_since_epoch().count());
  add_.bind_blob(16, workflow.until.boot.bytes());
  return add_.run();
}

Result<KeptWorkflow> WorkflowTable::decode(const Statement& row) const {
  auto scope = Scope::make(Bytes(row.bytes(1)), Bytes(row.bytes(2)), Bytes(row.bytes(3)),
                           Bytes(row.bytes(4)));
  if (!scope)
    return failure(ErrorCode::corrupt, "sqlite store: table workflow holds a scope that is none");
  const BootTime due{Duration(row.integer(14))};
  return KeptWorkflow{
      {id_from<OperationId>(row.bytes(0)), std::move(*scope), Bytes(row.bytes(5)),
       Bytes(row.bytes(6)), Bytes(row.bytes(7)), Bytes(row.bytes(8)),
       static_cast<std::uint64_t>(row.integer(9)), row.integer(11) != 0,
       Generation{static_cast<std::uint64_t>(row.integer(12))}, id_from<OwnerToken>(row.bytes(13))},
      id_from<OwnerToken>(row.bytes(10)),
      {due, id_from<BootId>(row.bytes(15))}};
}

Result<std::optional<KeptWorkflow>> WorkflowTable::find(const OperationId& id) {
  ResetAtEnd reset(find_);
  find_.bind_blob(1, id.bytes());
  auto stepped = find_.step();
  if (!stepped) return pass_on(stepped);
  if (!*stepped) return std::optional<KeptWorkflow>();
  auto decoded = decode(find_);
  if (!decoded) return pass_on(decoded);
  return std::optional(std::move(*decoded));
}

Result<std::vector<KeptWorkflow>> WorkflowTable::due(const std::string& definition, const Now& now,
                                                     std::size_t limit) {
  ResetAtEnd reset(due_);
  due_.bind_text(1, definition);
  due_.bind_blob(2, now.boot_id.bytes());
  due_.bind(3, now.boot.time_since_epoch().count());
  due_.bind(4, static_cast<std::int64_t>(limit));
  std::vector<KeptWorkflow> found;
  while (true) {
    auto stepped = due_.step();
    if (!stepped) return pass_on(stepped);
    if (!*stepped) return found;
    auto decoded = decode(due_);
    if (!decoded) return pass_on(decoded);
    found.push_back(std::move(*decoded));
  }
}

Result<void> WorkflowTable::update(const KeptWorkflow& workflow) {
  ResetAtEnd reset(update_);
  update_.bind_blob(1, workflow.row.id.bytes());
  update_.bind_blob(2, workflow.row.journal);
  update_.bind(3, static_cast<std::int64_t>(workflow.row.fence));
  update_.bind_blob(4, workflow.worker.bytes());
  update_.bind(5, workflow.row.stopped ? 1 : 0);
  update_.bind(6, workflow.until.end.time_since_epoch().count());
  update_.bind_blob(7, workflow.until.boot.bytes());
  return update_.run();
}

Result<void> WorkflowTable::erase(const OperationId& id) {
  ResetAtEnd reset(erase_);
  erase_.bind_blob(1, id.bytes());
  return erase_.run();
}

Result<answer::WorkflowCounts> WorkflowTable::count(const Now& now) {
  ResetAtEnd reset(count_);
  count_.bind_blob(1, now.boot_id.bytes());
  count_.bind(2, now.boot.time_since_epoch().count());
  answer::WorkflowCounts counts;
  while (true) {
    auto stepped = count_.step();
    if (!stepped) return pass_on(stepped);
    if (!*stepped) return counts;
    counts.definitions.push_back({Bytes(count_.bytes(0)),
                                  static_cast<std::uint64_t>(count_.integer(1)),
                                  static_cast<std::uint64_t>(count_.integer(2)),
                                  static_cast<std::uint64_t>(count_.integer(3))});
  }
}

}  // namespace einmal::sqlite
