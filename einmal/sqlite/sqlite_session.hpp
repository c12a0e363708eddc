#pragma once

#include <cstddef>
#include <memory>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/store/session.hpp"

struct sqlite3;

namespace einmal {

/// The scopes that transactions of this process hold, so that a duplicate is rejected at once and
/// writers of one process take turns instead of polling the file's lock. One object for each
/// database file, shared by all its sessions and outliving them. Thread-safe.
class SqliteOpenScopes {
 public:
  SqliteOpenScopes();
  ~SqliteOpenScopes();
  SqliteOpenScopes(const SqliteOpenScopes&) = delete;
  SqliteOpenScopes& operator=(const SqliteOpenScopes&) = delete;

  class Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

struct SqliteSessionOptions {
  /// Accepts a handle without WAL or with `synchronous` below FULL: after a loss of power, what was
  /// answered may be gone, effect and record together.
  bool relaxed_durability = false;
  /// How long a transaction waits for the file's single writer, whatever key that one is about;
  /// then `unavailable`. A busy handler of the application's own may make it longer.
  Duration busy_limit = std::chrono::seconds(2);
  /// The commit hook that the application has on the handle, if any: SQLite keeps only one, and the
  /// session puts its own in that place while a handler runs.
  int (*commit_hook)(void*) = nullptr;
  void* commit_hook_argument = nullptr;
};

/// A Session on the caller's own sqlite3*, for run_in_transaction. The records live in tables
/// einmal_* of the same file (docs/formats/sqlite-session.md), made when the session is.
///
/// The handle stays the caller's, who closes it after the session is gone; many sessions may use it
/// one after another, one thread at a time. While a handler runs, a commit hook refuses every
/// commit on the handle: neither a COMMIT of the handler nor a statement that runs in auto-commit
/// after SQLite has ended the transaction by itself (disk full, interrupt) leaves an effect without
/// its record.
///
/// Another process cannot tell keys apart while the file has a writer: it waits up to busy_limit.
class SqliteSession : public Session {
 public:
  /// Removes up to `limit` records whose retention and tombstone are over, and takes the results
  /// from tombstones. Returns how many rows it touched; fewer than `limit`: nothing more is due.
  virtual Result<std::size_t> sweep(std::size_t limit) = 0;
};

/// Errors: invalid (no file, rollback journal or `synchronous` below FULL without
/// relaxed_durability, an attached database, an open transaction, a commit hook that was not told),
/// incompatible (records of a newer version), unavailable (locked, disk full).
Result<std::unique_ptr<SqliteSession>> sqlite_session(sqlite3* handle, SqliteOpenScopes& scopes,
                                                      const Clock& clock, Random& random,
                                                      SqliteSessionOptions options = {});

}  // namespace einmal
