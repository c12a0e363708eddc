#pragma once

#include <optional>
#include <string>
#include <vector>

#include "einmal/sqlite_file/connection.hpp"
#include "einmal/sqlite_file/statement.hpp"
#include "einmal/store/store.hpp"

namespace einmal::sqlite {

/// A row and who holds it until when.
struct KeptWorkflow {
  WorkflowRow row;
  OwnerToken worker;
  Lease until;
};

/// The table `workflow` through one connection. Inside a write transaction.
class WorkflowTable {
 public:
  static Result<WorkflowTable> prepare(sqlite_file::Connection& connection);

  /// Unless a row of this id is there.
  Result<void> add(const KeptWorkflow& workflow);
  Result<std::optional<KeptWorkflow>> find(const OperationId& id);
  /// Rows of `definition` that are due and not stopped, longest due first.
  Result<std::vector<KeptWorkflow>> due(const std::string& definition, const Now& now,
                                        std::size_t limit);
  /// Writes what changes: journal, fence, worker, stopped, until.
  Result<void> update(const KeptWorkflow& workflow);
  Result<void> erase(const OperationId& id);
  Result<answer::WorkflowCounts> count(const Now& now);

 private:
  explicit WorkflowTable(sqlite_file::Connection& connection) : connection_(&connection) {}
  Result<KeptWorkflow> decode(const sqlite_file::Statement& row) const;

  sqlite_file::Connection* connection_;
  sqlite_file::Statement add_, find_, due_, update_, erase_, count_;
};

}  // namespace einmal::sqlite
