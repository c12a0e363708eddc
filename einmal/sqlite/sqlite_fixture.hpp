#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "einmal/sqlite/sqlite_store.hpp"

/// What the tests of this room share.

namespace einmal::testing {

/// A directory that is gone when this is.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "einmal-sqlite-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string file(const char* name = "store.db") const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline Scope pay_scope(const std::string& key) { return *Scope::make("app", "alice", "pay", key); }

inline event::Claim new_claim(Random& random) {
  event::Claim claim;
  claim.policies.lease = std::chrono::seconds(30);
  claim.owner = OwnerToken::draw(random);
  claim.operation_id = OperationId::draw(random);
  return claim;
}

inline event::Settle settle_of(Generation generation, OwnerToken owner, std::string body) {
  event::Settle settle;
  settle.generation = generation;
  settle.owner = owner;
  settle.result.status = 201;
  settle.result.body = std::move(body);
  return settle;
}

inline Result<Decision> claim(Store& store, const std::string& key, Random& random) {
  return ask_transition(store, {pay_scope(key), new_claim(random), nullptr, {}});
}

/// Claims and completes; false if anything stands in the way.
inline bool execute_once(Store& store, const std::string& key, Random& random) {
  auto claimed = claim(store, key, random);
  const auto* execute = claimed ? std::get_if<decision::Execute>(&*claimed) : nullptr;
  if (!execute) return false;
  const Record& record = execute->record;
  auto settled = ask_transition(
      store, {pay_scope(key), settle_of(record.generation, record.owner, key), nullptr, {}});
  return settled && std::holds_alternative<decision::Ok>(*settled);
}

/// Runs SQL on a file as any other program would; the first column of the last row.
inline std::string run_sql(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  std::string out;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) ADD_FAILURE() << "cannot open " << path;
  sqlite3_busy_timeout(db, 5000);
  const auto keep = [](void* to, int, char** values, char**) {
    *static_cast<std::string*>(to) = values[0] ? values[0] : "";
    return 0;
  };
  char* message = nullptr;
  if (sqlite3_exec(db, sql.c_str(), keep, &out, &message) != SQLITE_OK) {
    ADD_FAILURE() << sql << ": " << (message ? message : "");
  }
  sqlite3_free(message);
  sqlite3_close(db);
  return out;
}

/// What must hold in a store's file at any moment at which it is not being written.
inline void expect_sound(const std::string& path) {
  EXPECT_EQ(run_sql(path, "PRAGMA integrity_check"), "ok");
  const auto none = [&](const char* what, const std::string& sql) {
    EXPECT_EQ(run_sql(path, "SELECT count(*) FROM (" + sql + ")"), "0") << what;
  };
  const std::string known = " WHERE id <= (SELECT patrolled FROM counter) ";
  none("uncertain records and their agenda differ",
       "SELECT id FROM record WHERE state = 4 AND id NOT IN (SELECT record FROM agenda_uncertain) "
       "UNION ALL SELECT record FROM agenda_uncertain WHERE record NOT IN (SELECT id FROM record "
       "WHERE state = 4)");
  none("open records and their agenda differ",
       "SELECT id FROM record" + known +
           "AND state = 1 AND id NOT IN (SELECT record FROM agenda_open) UNION ALL SELECT record "
           "FROM agenda_open WHERE record NOT IN (SELECT id FROM record WHERE state = 1)");
  none("records to sweep and their agenda differ",
       "SELECT sweep_at, id FROM record" + known +
           "AND sweep_at IS NOT NULL EXCEPT SELECT at, record FROM agenda_sweep");
  none("the agenda names what is not to be swept",
       "SELECT at, record FROM agenda_sweep EXCEPT SELECT sweep_at, id FROM record");
  none("results without a record or audit row",
       "SELECT id FROM result WHERE id NOT IN (SELECT result FROM record WHERE result IS NOT NULL) "
       "AND id NOT IN (SELECT late_result FROM audit WHERE late_result IS NOT NULL)");
  none("records without their result",
       "SELECT id FROM record WHERE result IS NOT NULL AND result NOT IN (SELECT id FROM result)");
  none("settled records without a result or with a lease",
       "SELECT id FROM record WHERE state IN (2, 3) AND (settled IS NULL OR expires IS NULL OR "
       "lease_end IS NOT NULL)");
  none("generations beyond the counter",
       "SELECT id FROM record WHERE generation > (SELECT generation FROM counter) OR id > "
       "generation");
  none("operations without their entry",
       "SELECT id FROM record WHERE findable_by_id = 1 AND id NOT IN (SELECT record FROM "
       "operation)");
  none("entries of operations that are not there",
       "SELECT record FROM operation WHERE record NOT IN (SELECT id FROM record)");
}

}  // namespace einmal::testing
