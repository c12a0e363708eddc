#include "einmal/sqlite/session_tables.hpp"

#include <sqlite3.h>

#include <cstring>
#include <utility>

#include "einmal/sqlite/record_table.hpp"
#include "einmal/sqlite/scope_digest.hpp"

namespace einmal::sqlite {

namespace {

constexpr std::int64_t version = 1;

// docs/formats/sqlite-session.md. Times are microseconds since 1970 UTC, lengths microseconds;
// numbers are those of the enums in einmal/core.
constexpr const char* schema = R"sql(
CREATE TABLE einmal_state (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  version INTEGER NOT NULL,
  oldest_writer INTEGER NOT NULL,
  secret BLOB NOT NULL CHECK (length(secret) = 16),
  generation INTEGER NOT NULL,
  wall INTEGER, boot INTEGER, boot_id BLOB, paused INTEGER NOT NULL
) STRICT;
CREATE TABLE einmal_record (
  id INTEGER PRIMARY KEY,
  namespace BLOB NOT NULL, caller BLOB NOT NULL, operation BLOB NOT NULL, key BLOB NOT NULL,
  state INTEGER NOT NULL CHECK (state IN (2, 3)),
  generation INTEGER NOT NULL, owner BLOB NOT NULL, operation_id BLOB NOT NULL,
  profile BLOB NOT NULL, fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
  retention INTEGER NOT NULL, after_expiry INTEGER NOT NULL, tombstone INTEGER NOT NULL,
  created INTEGER NOT NULL, settled INTEGER NOT NULL, expires INTEGER NOT NULL,
  sweep_at INTEGER NOT NULL,
  status INTEGER, headers BLOB, body_kept INTEGER, effect INTEGER, representation_version INTEGER,
  resource_id BLOB, body BLOB
) STRICT;
CREATE INDEX einmal_record_sweep ON einmal_record (sweep_at);
)sql";

constexpr const char* record_columns =
    "id, namespace, caller, operation, key, state, generation, owner, operation_id, profile, "
    "fingerprint, retention, after_expiry, tombstone, created, settled, expires, status, headers, "
    "body_kept, effect, representation_version, resource_id, body";

enum Column : int {
  id,
  name_space,
  caller,
  operation,
  key,
  state,
  generation,
  owner,
  operation_id,
  profile,
  fingerprint,
  retention,
  after_expiry,
  tombstone,
  created,
  settled,
  expires,
  status,
  headers,
  body_kept,
  effect,
  representation_version,
  resource_id,
  body
};

/// Scopes of one digest take neighbouring rows: an equal digest is likely once in 2^64.
constexpr std::int64_t neighbours = 8;

WallTime wall(std::int64_t us) { return WallTime(Duration(us)); }
std::int64_t us(WallTime at) { return at.time_since_epoch().count(); }

const std::string& find_sql() {
  static const std::string sql = std::string("SELECT ") + record_columns +
                                 " FROM einmal_record WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
  return sql;
}
const std::string& due_sql() {
  static const std::string sql =
      std::string("SELECT ") + record_columns +
      " FROM einmal_record WHERE sweep_at <= ?1 ORDER BY sweep_at LIMIT 1";
  return sql;
}

std::optional<Digest> digest_of(BytesView bytes, bool or_empty) {
  Digest digest{};
  if (bytes.empty() && or_empty) return digest;
  if (bytes.size() != digest.size()) return std::nullopt;
  std::memcpy(digest.data(), bytes.data(), digest.size());
  return digest;
}

BytesView bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

bool is_of(const BorrowedStatement& row, const Scope& scope) {
  return row.bytes(key) == scope.key() && row.bytes(operation) == scope.operation() &&
         row.bytes(caller) == scope.caller() && row.bytes(name_space) == scope.name_space();
}

std::optional<StoredResult> result_of(const BorrowedStatement& row) {
  if (row.is_null(status)) return std::nullopt;
  StoredResult result;
  result.status = static_cast<int>(row.integer(status));
  result.headers = row.bytes(headers);
  result.body = row.bytes(body);
  result.body_kept = static_cast<BodyKept>(row.integer(body_kept));
  result.effect = static_cast<Effect>(row.integer(effect));
  result.representation_version = static_cast<int>(row.integer(representation_version));
  if (!row.is_null(resource_id)) result.resource_id = Bytes(row.bytes(resource_id));
  return result;
}

Result<Record> record_of(const BorrowedStatement& row) {
  Record record;
  const auto token = OwnerToken::from_bytes(row.bytes(owner));
  const auto op = OperationId::from_bytes(row.bytes(operation_id));
  const auto under = digest_of(row.bytes(profile), true);
  const auto digest = digest_of(row.bytes(fingerprint), false);
  if (!token || !op || !under || !digest)
    return failure(ErrorCode::corrupt,
                   "sqlite session: einmal_record holds a row that contradicts itself");
  record.state = row.integer(state) == 3 ? State::failed : State::completed;
  record.fingerprint = {*under, *digest};
  record.generation = Generation{static_cast<std::uint64_t>(row.integer(generation))};
  record.owner = *token;
  record.operation_id = *op;
  record.policies.retention = Duration(row.integer(retention));
  record.policies.after_expiry = static_cast<AfterExpiry>(row.integer(after_expiry));
  record.policies.tombstone = Duration(row.integer(tombstone));
  record.settled_by = SettledBy::owner;
  record.created = record.claimed = wall(row.integer(created));
  record.settled = wall(row.integer(settled));
  record.expires = wall(row.integer(expires));
  record.result = result_of(row);
  return record;
}

}  // namespace

Error session_error(sqlite3* handle, int result_code, std::string_view doing) {
  ErrorCode code = ErrorCode::unavailable;
  switch (result_code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      code = ErrorCode::corrupt;
      break;
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_READONLY:
      code = ErrorCode::invalid;
      break;
    case SQLITE_ERROR:
    case SQLITE_MISUSE:
      code = ErrorCode::internal;
      break;
    default:
      break;
  }
  return {code, "sqlite session: " + std::string(doing) + ": " + sqlite3_errmsg(handle)};
}

// --- statements

BorrowedStatement::BorrowedStatement(BorrowedStatement&& other) noexcept
    : handle_(other.handle_),
      sql_(other.sql_),
      statement_(std::exchange(other.statement_, nullptr)) {}

BorrowedStatement& BorrowedStatement::operator=(BorrowedStatement&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(sql_, other.sql_);
  std::swap(statement_, other.statement_);
  return *this;
}

BorrowedStatement::~BorrowedStatement() { sqlite3_finalize(statement_); }

int BorrowedStatement::prepare() {
  if (statement_) return SQLITE_OK;
  return sqlite3_prepare_v3(handle_, sql_, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
}

BorrowedStatement& BorrowedStatement::bind(int parameter, std::int64_t value) {
  if (prepare() == SQLITE_OK) sqlite3_bind_int64(statement_, parameter, value);
  return *this;
}
BorrowedStatement& BorrowedStatement::bind(int parameter,
                                           const std::optional<std::int64_t>& value) {
  if (value) return bind(parameter, *value);
  if (prepare() == SQLITE_OK) sqlite3_bind_null(statement_, parameter);
  return *this;
}
BorrowedStatement& BorrowedStatement::bind(int parameter, BytesView value) {
  if (prepare() == SQLITE_OK)
    sqlite3_bind_blob64(statement_, parameter, value.data() ? value.data() : "", value.size(),
                        SQLITE_STATIC);
  return *this;
}

Result<bool> BorrowedStatement::step() {
  int code = prepare();
  if (code == SQLITE_OK) code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return tl::unexpected(session_error(handle_, code, "reading"));
}

int BorrowedStatement::run() {
  int code = prepare();
  if (code != SQLITE_OK) return code;
  while ((code = sqlite3_step(statement_)) == SQLITE_ROW) {
  }
  reset();
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

void BorrowedStatement::reset() {
  if (statement_) sqlite3_reset(statement_);
}

bool BorrowedStatement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
std::int64_t BorrowedStatement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}
BytesView BorrowedStatement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  return {static_cast<const char*>(data),
          static_cast<std::size_t>(data ? sqlite3_column_bytes(statement_, column) : 0)};
}

namespace {

struct Reset {
  explicit Reset(BorrowedStatement& s) : statement(s) {}
  Reset(const Reset&) = delete;
  Reset& operator=(const Reset&) = delete;
  ~Reset() { statement.reset(); }
  BorrowedStatement& statement;
};

}  // namespace

// --- tables

SessionTables::SessionTables(sqlite3* handle)
    : handle_(handle),
      state_(handle, "SELECT generation, wall, boot, boot_id, paused FROM main.einmal_state"),
      set_state_(
          handle,
          "UPDATE main.einmal_state SET generation = ?1, wall = ?2, boot = ?3, boot_id = ?4, "
          "paused = ?5"),
      find_(handle, find_sql().c_str()),
      put_(handle,
           "REPLACE INTO main.einmal_record (id, namespace, caller, operation, key, state, "
           "generation, owner, operation_id, profile, fingerprint, retention, after_expiry, "
           "tombstone, created, settled, expires, status, headers, body_kept, effect, "
           "representation_version, resource_id, body, sweep_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, "
           "?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, "
           "?25)"),
      erase_(handle, "DELETE FROM main.einmal_record WHERE id = ?1"),
      strip_(
          handle,
          "UPDATE main.einmal_record SET status = NULL, headers = NULL, body_kept = NULL, effect "
          "= NULL, representation_version = NULL, resource_id = NULL, body = NULL, sweep_at = ?2 "
          "WHERE id = ?1"),
      due_(handle, due_sql().c_str()) {}

Result<bool> SessionTables::are_there() {
  BorrowedStatement there(handle_,
                          "SELECT count(*) FROM main.sqlite_schema WHERE name = 'einmal_state'");
  auto row = there.step();
  if (!row) return pass_on(row);
  if (there.integer(0) == 0) return false;
  if (auto known = check_version(); !known) return pass_on(known);
  return true;
}

Result<void> SessionTables::ensure(Random& random) {
  const auto there = are_there();
  if (!there) return pass_on(there);
  if (*there) return {};
  if (const int code = sqlite3_exec(handle_, schema, nullptr, nullptr, nullptr); code != SQLITE_OK)
    return tl::unexpected(session_error(handle_, code, "making its tables"));
  Bytes secret(16, '\0');
  random.fill(secret.data(), secret.size());
  BorrowedStatement first(handle_,
                          "INSERT INTO main.einmal_state VALUES (1, ?1, ?1, ?2, 0, NULL, "
                          "NULL, NULL, 0)");
  first.bind(1, version).bind(2, BytesView(secret));
  if (const int code = first.run(); code != SQLITE_OK)
    return tl::unexpected(session_error(handle_, code, "making its tables"));
  return check_version();
}

Result<void> SessionTables::check_version() {
  BorrowedStatement read(handle_, "SELECT oldest_writer, secret FROM main.einmal_state");
  auto row = read.step();
  if (!row) return pass_on(row);
  if (!*row) return failure(ErrorCode::corrupt, "sqlite session: einmal_state is empty");
  if (read.integer(0) > version)
    return failure(ErrorCode::incompatible, "sqlite session: the tables einmal_* are of version " +
                                                std::to_string(read.integer(0)) +
                                                "; use a newer einmal");
  secret_ = read.bytes(1);
  return {};
}

Result<SessionState> SessionTables::state() {
  const Reset reset(state_);
  auto row = state_.step();
  if (!row) return pass_on(row);
  if (!*row) return failure(ErrorCode::corrupt, "sqlite session: einmal_state is empty");
  SessionState out;
  out.generation = state_.integer(0);
  out.clock.paused = state_.integer(4) != 0;
  const auto boot_id = BootId::from_bytes(state_.bytes(3));
  if (boot_id)
    out.clock.last =
        ClockLook{wall(state_.integer(1)), BootTime(Duration(state_.integer(2))), *boot_id};
  return out;
}

Result<void> SessionTables::written(int result_code, std::string_view doing) {
  if (result_code == SQLITE_OK) return {};
  return tl::unexpected(session_error(handle_, result_code, doing));
}

Result<void> SessionTables::set_state(const SessionState& state) {
  std::optional<std::int64_t> at, boot;
  BytesView boot_id;
  if (state.clock.last) {
    at = us(state.clock.last->wall);
    boot = state.clock.last->boot.time_since_epoch().count();
    boot_id = state.clock.last->boot_id.bytes();
  }
  set_state_.bind(1, state.generation).bind(2, at).bind(3, boot).bind(4, boot_id);
  set_state_.bind(5, std::int64_t{state.clock.paused ? 1 : 0});
  return written(set_state_.run(), "writing");
}

std::int64_t SessionTables::digest(const Scope& scope) const {
  std::array<std::uint64_t, 2> secret{};
  std::memcpy(secret.data(), secret_.data(), sizeof secret);
  // Half the range, so that a digest and its neighbours are all positive.
  return static_cast<std::int64_t>(siphash(secret, scope.canonical_bytes()) >> 2) + 1;
}

Result<SessionRow> SessionTables::find(const Scope& scope) {
  SessionRow found;
  found.id = digest(scope);
  const std::int64_t last = found.id + neighbours - 1;
  const Reset reset(find_);
  find_.bind(1, found.id).bind(2, last);
  while (true) {
    auto row = find_.step();
    if (!row) return pass_on(row);
    if (!*row) break;
    if (is_of(find_, scope)) {
      auto record = record_of(find_);
      if (!record) return pass_on(record);
      return SessionRow{find_.integer(id), std::move(*record)};
    }
    if (find_.integer(id) == found.id) ++found.id;  // taken by another scope
  }
  if (found.id > last)
    return failure(ErrorCode::invalid,
                   "sqlite session: too many scopes of one digest; use another key");
  return found;
}

Result<void> SessionTables::put(const SessionRow& row, const Scope& scope, const Record& record) {
  const StoredResult none;
  const StoredResult& result = record.result ? *record.result : none;
  const auto if_kept = [&](std::int64_t value) {
    return record.result ? std::optional(value) : std::nullopt;
  };
  const Bytes profile_id = record.fingerprint.profile == Digest{}
                               ? Bytes()
                               : Bytes(bytes_of(record.fingerprint.profile));
  put_.bind(1, row.id).bind(2, BytesView(scope.name_space())).bind(3, BytesView(scope.caller()));
  put_.bind(4, BytesView(scope.operation())).bind(5, BytesView(scope.key()));
  put_.bind(6, static_cast<std::int64_t>(record.state));
  put_.bind(7, static_cast<std::int64_t>(number(record.generation))).bind(8, record.owner.bytes());
  put_.bind(9, record.operation_id.bytes()).bind(10, BytesView(profile_id));
  put_.bind(11, bytes_of(record.fingerprint.digest)).bind(12, record.policies.retention.count());
  put_.bind(13, static_cast<std::int64_t>(record.policies.after_expiry));
  put_.bind(14, record.policies.tombstone.count()).bind(15, us(record.created));
  put_.bind(16, us(*record.settled)).bind(17, us(*record.expires));
  put_.bind(18, if_kept(result.status)).bind(19, BytesView(result.headers));
  put_.bind(20, if_kept(static_cast<std::int64_t>(result.body_kept)));
  put_.bind(21, if_kept(static_cast<std::int64_t>(result.effect)));
  put_.bind(22, if_kept(result.representation_version));
  if (result.resource_id) {
    put_.bind(23, BytesView(*result.resource_id));
  } else {
    put_.bind(23, std::optional<std::int64_t>());
  }
  put_.bind(24, BytesView(result.body)).bind(25, us(*sweep_time(record)));
  return written(put_.run(), "writing");
}

Result<void> SessionTables::erase(std::int64_t row_id) {
  erase_.bind(1, row_id);
  return written(erase_.run(), "writing");
}

Result<void> SessionTables::strip(std::int64_t row_id, WallTime end) {
  strip_.bind(1, row_id).bind(2, us(end));
  return written(strip_.run(), "writing");
}

Result<std::optional<SessionRow>> SessionTables::due(WallTime now) {
  const Reset reset(due_);
  due_.bind(1, us(now));
  auto row = due_.step();
  if (!row) return pass_on(row);
  if (!*row) return std::optional<SessionRow>();
  auto record = record_of(due_);
  if (!record) return pass_on(record);
  return std::optional(SessionRow{due_.integer(id), std::move(*record)});
}

}  // namespace einmal::sqlite
