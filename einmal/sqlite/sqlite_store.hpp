#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/store/store.hpp"

namespace einmal {

struct SqliteOptions {
  bool create = true;  ///< Make the file if it is not there. Its directory must exist.
  /// How long a write waits for another process's lock before its commands are answered
  /// `unavailable`.
  Duration busy_limit = std::chrono::seconds(2);
  std::size_t max_batch = 512;  ///< Commands committed together at most.
  Duration audit_retention = std::chrono::hours(24 * 400);
  int cache_kib = 8 * 1024;  ///< Page cache of the writer; the reader takes half as much.
  /// The WAL is copied to the database file beside running writes from this size on ...
  std::size_t checkpoint_bytes = 16u << 20;
  /// ... and started from its beginning by the writer, which then waits for the rest, at this one.
  std::size_t wal_limit_bytes = 64u << 20;
  /// Name of a registered sqlite3_vfs; empty: the default. The seam for fault injection.
  std::string vfs;
};

/// The embedded store: one SQLite file in WAL mode with synchronous FULL, shared safely by several
/// processes (docs/formats/sqlite.md).
///
/// Starts three threads of its own: a writer, which commits together whatever waits; a reader, so
/// that a replay never waits for somebody's flush and long lists go in pages; and a checkpoint
/// helper. `completed` runs on the writer or the reader. The destructor answers every command it
/// was given, then closes the file. Clock and Random must outlive the store and be thread-safe.
///
/// After a crash (kill -9, loss of power) the file holds exactly the steps that were answered and
/// possibly some that were not answered yet, each of them whole.
///
/// Errors of opening: `invalid` (directory missing, not writable), `incompatible` (another
/// program's file, or a newer schema), `corrupt`, `unavailable` (locked, disk full). Each names the
/// path.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path,
                                                 const SqliteOptions& options, const Clock& clock,
                                                 Random& random);

}  // namespace einmal
