#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "einmal/base/clock.hpp"
#include "einmal/base/error.hpp"
#include "einmal/base/random.hpp"

struct sqlite3;

namespace einmal::sqlite_file {

class Statement;

/// What a file of ours is: its `application_id`, the name people read in errors ("einmal store"),
/// and the SQL that leads from each schema version to the next. Element 0 makes version 1 out of an
/// empty file; the number of elements is the version this build writes (`user_version`).
struct FileKind {
  std::int32_t application_id = 0;
  std::string_view name;
  std::span<const char* const> steps;
};

struct ConnectionOptions {
  std::string path;
  FileKind kind;
  bool create = true;  ///< Make the file if it is not there. Its directory must exist.
  /// How long a statement waits for another connection's lock before it fails with `unavailable`.
  Duration busy_limit = std::chrono::seconds(2);
  int cache_kib = 8 * 1024;
  /// Name of a registered sqlite3_vfs; empty: the default. The seam for fault injection.
  std::string vfs;
};

/// One connection to one SQLite file: WAL, synchronous FULL, foreign keys on, no automatic
/// checkpoint, own busy handler. These settings hold for every connection there is, since this is
/// the only way to open one. Belongs to one thread at a time.
///
/// The busy handler sleeps for short random times up to `busy_limit`. SQLite's own backs off to
/// 100 ms and so loses every race against a process that commits back to back.
class Connection {
 public:
  /// Errors, each naming the path and what to do:
  ///   invalid       directory missing, file not writable or not creatable
  ///   incompatible  not an SQLite database, or one that belongs to another program: left untouched
  ///   corrupt       damaged database
  ///   unavailable   locked by another process for longer than busy_limit, disk full, I/O error
  static Result<std::unique_ptr<Connection>> open(ConnectionOptions options, Random& random);

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Every Statement must be gone.
  ~Connection();

  /// `sql` is one statement; it is meant to be kept and used many times.
  Result<Statement> prepare(std::string_view sql);
  /// Runs any number of statements that return nothing of interest.
  Result<void> execute(const char* sql);
  /// Runs one statement that returns one integer.
  Result<std::int64_t> query_integer(const char* sql);

  /// Whether a transaction is open. SQLite ends one by itself on some errors (disk full, I/O,
  /// out of memory): what follows would run in auto-commit. Ask after every error.
  bool in_transaction() const;
  std::int64_t last_insert_id() const;
  int rows_changed() const;

  /// The size of the WAL after the last commit of this connection.
  std::size_t wal_bytes() const { return wal_frames_ * (page_bytes_ + wal_frame_header_bytes); }

  struct Checkpoint {
    bool blocked = false;  ///< A reader or writer stood in the way of a complete one.
    int wal_frames = 0;    ///< Frames in the WAL.
    int moved_frames = 0;  ///< How many of them are in the database file now.
  };
  enum class CheckpointMode { passive, restart, truncate };
  /// Copies what the WAL holds to the database file. `passive` never waits for anybody; the others
  /// wait up to busy_limit and let the WAL start from its beginning again.
  Result<Checkpoint> checkpoint(CheckpointMode mode);

  /// Flushes the database file, whatever checkpoints wrote to it. A complete checkpoint does so
  /// itself, and then finds less to wait for.
  Result<void> sync_database();

  /// The failure behind the last call on this connection: what was being done, the path, what to
  /// do.
  Error error(int result_code, std::string_view doing) const;

  void set_busy_limit(Duration limit) { busy_limit_ = limit; }
  const std::string& path() const { return path_; }
  const FileKind& kind() const { return kind_; }
  sqlite3* handle() const { return handle_; }

 private:
  Connection(const ConnectionOptions& options, std::uint64_t seed);
  Result<void> open_file(const ConnectionOptions& options);
  Result<void> check_kind();
  Result<void> configure(const ConnectionOptions& options);
  Result<void> switch_to_wal();
  static constexpr std::size_t wal_frame_header_bytes = 24;
  static int busy(void* self, int calls);
  static int committed(void* self, sqlite3* handle, const char* database, int frames);
  int wait_for_lock(int calls);

  std::string path_;
  FileKind kind_;
  Duration busy_limit_;
  SeededRandom jitter_;
  sqlite3* handle_ = nullptr;
  std::int64_t waiting_since_us_ = 0;
  std::size_t wal_frames_ = 0;
  std::size_t page_bytes_ = 0;
};

}  // namespace einmal::sqlite_file
