#pragma once

#include <memory>
#include <string>

#include "einmal/sqlite/agenda.hpp"
#include "einmal/sqlite/audit_table.hpp"
#include "einmal/sqlite/meta_table.hpp"
#include "einmal/sqlite/profile_table.hpp"
#include "einmal/sqlite/record_table.hpp"
#include "einmal/sqlite/scope_digest.hpp"
#include "einmal/sqlite/sqlite_store.hpp"
#include "einmal/sqlite/workflow_table.hpp"
#include "einmal/sqlite_file/connection.hpp"
#include "einmal/sqlite_file/transaction.hpp"

namespace einmal::sqlite {

/// One connection to the store's file with everything prepared on it. Belongs to one thread.
struct StoreFile {
  std::unique_ptr<sqlite_file::Connection> connection;
  sqlite_file::TransactionControl transactions;
  MetaTable meta;
  std::unique_ptr<ProfileTable> profiles;
  std::unique_ptr<Agenda> agenda;
  std::unique_ptr<RecordTable> records;
  std::unique_ptr<AuditTable> audits;
  std::unique_ptr<WorkflowTable> workflows;
};

struct OpenFile {
  std::string path;
  SqliteOptions options;
  int cache_kib = 0;
};

/// Opens, brings the schema up to date, refuses what a newer version keeps for itself.
Result<std::unique_ptr<StoreFile>> open_store_file(const OpenFile& how, Random& random);

/// The same while the store runs: what opening calls `invalid` (a directory that is gone) is then
/// `unavailable`, for the commands are right.
Result<std::unique_ptr<StoreFile>> open_store_file_again(const OpenFile& how, Random& random);

/// Whether this version may (still) write to the file. Errors: incompatible.
Result<void> check_may_write(StoreFile& file);

}  // namespace einmal::sqlite
