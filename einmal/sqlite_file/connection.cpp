#include "einmal/sqlite_file/connection.hpp"

#include <fmt/format.h>
#include <sqlite3.h>
#include <time.h>

#include <filesystem>
#include <thread>

#include "einmal/sqlite_file/statement.hpp"
#include "einmal/sqlite_file/wal_vfs.hpp"

namespace einmal::sqlite_file {

namespace {

std::int64_t steady_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ErrorCode code_of(int primary) {
  switch (primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
    case SQLITE_PROTOCOL:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return ErrorCode::unavailable;
    case SQLITE_CORRUPT:
      return ErrorCode::corrupt;
    case SQLITE_NOTADB:
    case SQLITE_SCHEMA:
      return ErrorCode::incompatible;
    case SQLITE_TOOBIG:
    case SQLITE_CONSTRAINT:
      return ErrorCode::invalid;
    default:
      return ErrorCode::internal;
  }
}

std::string_view advice_for(int primary) {
  switch (primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process holds the write lock; nothing was changed, try again";
    case SQLITE_FULL:
      return "the disk is full; free some space and try again";
    case SQLITE_IOERR:
      return "the disk reports an error; check it and the system log";
    case SQLITE_READONLY:
      return "the file or its directory is not writable; check owner, mode and mount options";
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return "cannot be opened or created; check that it and its directory are writable";
    case SQLITE_NOTADB:
      return "not an SQLite database; name another file";
    case SQLITE_CORRUPT:
      return "the database is damaged; restore it from a backup";
    default:
      return "see the SQLite message";
  }
}

}  // namespace

Connection::Connection(const ConnectionOptions& options, std::uint64_t seed)
    : path_(options.path), kind_(options.kind), busy_limit_(options.busy_limit), jitter_(seed) {}

Connection::~Connection() { sqlite3_close(handle_); }

Result<std::unique_ptr<Connection>> Connection::open(ConnectionOptions options, Random& random) {
  std::uint64_t seed = 0;
  random.fill(&seed, sizeof seed);
  std::unique_ptr<Connection> connection(new Connection(options, seed));
  if (auto opened = connection->open_file(options); !opened) return pass_on(opened);
  if (auto ours = connection->check_kind(); !ours) return pass_on(ours);
  if (auto configured = connection->configure(options); !configured) return pass_on(configured);
  return connection;
}

Result<void> Connection::open_file(const ConnectionOptions& options) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path directory = fs::path(path_).parent_path();
  if (!directory.empty() && !fs::is_directory(directory, ignored)) {
    return failure(ErrorCode::invalid, fmt::format("{}: the directory {} does not exist; create it",
                                                   path_, directory.string()));
  }
  if (fs::is_directory(path_, ignored)) {
    return failure(ErrorCode::invalid, fmt::format("{}: a directory; name a file", path_));
  }
  if (!options.create && !fs::exists(path_, ignored)) {
    return failure(ErrorCode::invalid, fmt::format("{}: no such file", path_));
  }
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                    SQLITE_OPEN_EXRESCODE | (options.create ? SQLITE_OPEN_CREATE : 0);
  auto vfs = wal_vfs(options.vfs);
  if (!vfs) return pass_on(vfs);
  const int code = sqlite3_open_v2(path_.c_str(), &handle_, flags, vfs->c_str());
  if (code != SQLITE_OK) {
    const Error why = error(code, "open");
    return failure((code & 0xff) == SQLITE_CANTOPEN ? ErrorCode::invalid : why.code, why.message);
  }
  if (sqlite3_db_readonly(handle_, "main") == 1) {
    return failure(
        ErrorCode::invalid,
        fmt::format("{}: not writable for this user; check owner, mode and mount options", path_));
  }
  sqlite3_busy_handler(handle_, &Connection::busy, this);
  return {};
}

// Before anything is written, so that somebody else's file stays as it was.
Result<void> Connection::check_kind() {
  auto id = query_integer("PRAGMA application_id");
  if (!id) return pass_on(id);
  if (*id == kind_.application_id) return {};
  auto version = query_integer("PRAGMA user_version");
  if (!version) return pass_on(version);
  auto objects = query_integer("SELECT count(*) FROM sqlite_schema");
  if (!objects) return pass_on(objects);
  if (*id == 0 && *version == 0 && *objects == 0) return {};
  return failure(
      ErrorCode::incompatible,
      fmt::format("{}: an SQLite database, but not an {} (application_id {:#x}, expected "
                  "{:#x}); it was left as it is; name another file",
                  path_, kind_.name, static_cast<std::uint32_t>(*id),
                  static_cast<std::uint32_t>(kind_.application_id)));
}

Result<void> Connection::configure(const ConnectionOptions& options) {
  if (auto switched = switch_to_wal(); !switched) return switched;
  sqlite3_wal_hook(handle_, &Connection::committed, this);  // in place of automatic checkpoints
  auto page_size = query_integer("PRAGMA page_size");
  if (!page_size) return pass_on(page_size);
  page_bytes_ = static_cast<std::size_t>(*page_size);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  const auto settings = fmt::format(
      "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -{}; "
      "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF",
      options.cache_kib);
  return execute(settings.c_str());
}

// SQLite does not ask the busy handler for every lock of this switch, so it is repeated here.
Result<void> Connection::switch_to_wal() {
  const std::int64_t deadline = steady_us() + busy_limit_.count();
  while (true) {
    auto statement = prepare("PRAGMA journal_mode = WAL");
    if (!statement) return pass_on(statement);
    auto row = statement->step();
    if (row && *row) {
      if (statement->bytes(0) == "wal") return {};
      return failure(
          ErrorCode::invalid,
          fmt::format("{}: this file system does not offer what WAL needs (shared memory "
                      "and locks); use a local one",
                      path_));
    }
    const int primary = sqlite3_errcode(handle_) & 0xff;
    const bool locked = primary == SQLITE_BUSY || primary == SQLITE_LOCKED;
    if (!locked || steady_us() >= deadline) return pass_on(row);
    std::this_thread::sleep_for(Duration(200 + jitter_.below(2000)));
  }
}

int Connection::committed(void* self, sqlite3*, const char*, int frames) {
  static_cast<Connection*>(self)->wal_frames_ = static_cast<std::size_t>(frames);
  return SQLITE_OK;
}

int Connection::busy(void* self, int calls) {
  return static_cast<Connection*>(self)->wait_for_lock(calls);
}

int Connection::wait_for_lock(int calls) {
  const std::int64_t now = steady_us();
  if (calls == 0) waiting_since_us_ = now;
  const std::int64_t left = waiting_since_us_ + busy_limit_.count() - now;
  if (left <= 0) return 0;
  const std::int64_t nap = 100 + static_cast<std::int64_t>(jitter_.below(400));
  std::this_thread::sleep_for(Duration(std::min(nap, left)));
  return 1;
}

Result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) {
    const Error why = error(code, "prepare a statement");
    return failure(why.code, why.message);
  }
  return Statement(*this, statement);
}

Result<void> Connection::execute(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return {};
  const Error why = error(code, "run a statement");
  return failure(why.code, why.message);
}

Result<std::int64_t> Connection::query_integer(const char* sql) {
  auto statement = prepare(sql);
  if (!statement) return pass_on(statement);
  auto row = statement->step();
  if (!row) return pass_on(row);
  if (!*row) return failure(ErrorCode::corrupt, fmt::format("{}: a row is missing", path_));
  return statement->integer(0);
}

bool Connection::in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }
std::int64_t Connection::last_insert_id() const { return sqlite3_last_insert_rowid(handle_); }
int Connection::rows_changed() const { return sqlite3_changes(handle_); }

Result<Connection::Checkpoint> Connection::checkpoint(CheckpointMode mode) {
  Checkpoint done;
  const int how = mode == CheckpointMode::passive   ? SQLITE_CHECKPOINT_PASSIVE
                  : mode == CheckpointMode::restart ? SQLITE_CHECKPOINT_RESTART
                                                    : SQLITE_CHECKPOINT_TRUNCATE;
  const int code =
      sqlite3_wal_checkpoint_v2(handle_, "main", how, &done.wal_frames, &done.moved_frames);
  const int primary = code & 0xff;
  done.blocked = primary == SQLITE_BUSY || primary == SQLITE_LOCKED;
  if (code == SQLITE_OK || done.blocked) return done;
  const Error why = error(code, "checkpoint");
  return failure(why.code, why.message);
}

Result<void> Connection::sync_database() {
  sqlite3_file* file = nullptr;
  int code = sqlite3_file_control(handle_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (code == SQLITE_OK) code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
  if (code == SQLITE_OK) return {};
  const Error why = error(code, "flush the database file");
  return failure(why.code, why.message);
}

Error Connection::error(int result_code, std::string_view doing) const {
  const int primary = result_code & 0xff;
  return {code_of(primary),
          fmt::format("{}: cannot {}: {} ({}; SQLite {})", path_, doing, advice_for(primary),
                      handle_ ? sqlite3_errmsg(handle_) : "no memory", result_code)};
}

}  // namespace einmal::sqlite_file
