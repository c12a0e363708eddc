#include "einmal/sqlite/record_table.hpp"

#include <fmt/format.h>

#include <cstring>

#include "einmal/sqlite/columns.hpp"

namespace einmal::sqlite {

using sqlite_file::Connection;
using sqlite_file::ResetAtEnd;
using sqlite_file::Statement;

namespace {

#define EINMAL_RECORD_COLUMNS                                                       \
  " id, scope_nth, result, findable_by_id, namespace, caller, operation, key, "     \
  "state, generation, owner, operation_id, attempts, profile, fingerprint, lease, " \
  "on_lease_expiry, retention, after_expiry, tombstone, lease_end, lease_boot, "    \
  "cause, settled_by, created, claimed, settled, expires "

enum Column : int {
  id,
  nth,
  result_id,
  findable_by_id,
  name_space,
  caller,
  operation,
  key,
  state,
  generation,
  owner,
  operation_id,
  attempts,
  profile,
  fingerprint,
  lease,
  on_lease_expiry,
  retention,
  after_expiry,
  tombstone,
  lease_end,
  lease_boot,
  cause,
  settled_by,
  created,
  claimed,
  settled,
  expires
};

constexpr const char* find_sql =
    "SELECT " EINMAL_RECORD_COLUMNS R"sql( FROM record WHERE scope_digest = ?1)sql";

constexpr const char* by_id_sql = "SELECT" EINMAL_RECORD_COLUMNS "FROM record WHERE id = ?1";
constexpr const char* by_operation_sql =
    "SELECT" EINMAL_RECORD_COLUMNS
    "FROM record WHERE id = (SELECT record FROM operation WHERE id = ?1) AND operation_id = ?2";

constexpr const char* insert_sql = R"sql(
  INSERT INTO record (
    state, generation, owner, attempts, profile, fingerprint,
    lease, on_lease_expiry, retention, after_expiry, tombstone,
    lease_end, lease_boot, cause, settled_by, created, claimed, settled, expires, sweep_at,
    result, result_bytes,
    scope_digest, scope_nth, namespace, caller, operation, key, operation_id, findable_by_id, id)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
    ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31))sql";

// Indexed columns that cannot change are not named: SQLite would move their index entries.
constexpr const char* update_sql = R"sql(
  UPDATE record SET
    state = ?1, generation = ?2, owner = ?3, attempts = ?4, profile = ?5, fingerprint = ?6,
    lease = ?7, on_lease_expiry = ?8, retention = ?9, after_expiry = ?10, tombstone = ?11,
    lease_end = ?12, lease_boot = ?13, cause = ?14, settled_by = ?15, created = ?16,
    claimed = ?17, settled = ?18, expires = ?19, sweep_at = ?20, result = ?21, result_bytes = ?22
  WHERE id = ?23)sql";

// What an ordinary completion changes.
constexpr const char* settle_sql = R"sql(
  UPDATE record SET
    state = ?1, lease_end = NULL, lease_boot = NULL, settled_by = ?2,
    settled = ?3, expires = ?4, sweep_at = ?5, result = ?6, result_bytes = ?7
  WHERE id = ?8)sql";

constexpr const char* add_result_sql = R"sql(
  INSERT INTO result (
    status, headers, body, body_kept, effect, representation_version, resource_id)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7))sql";

#define EINMAL_RESULT_HEAD "status, body_kept, effect, representation_version, resource_id"
constexpr const char* result_sql =
    "SELECT " EINMAL_RESULT_HEAD ", headers, body FROM result WHERE id = ?1";
constexpr const char* result_head_sql = "SELECT " EINMAL_RESULT_HEAD " FROM result WHERE id = ?1";

std::int64_t bytes_of(const Record& record) {
  if (!record.result) return 0;
  const StoredResult& result = *record.result;
  return static_cast<std::int64_t>(result.headers.size() + result.body.size() +
                                   (result.resource_id ? result.resource_id->size() : 0));
}

/// Whether `after` differs from `before` in nothing but what settle_sql writes.
bool only_settles(const Record& before, const Record& after) {
  return before.state == State::processing && !after.lease &&
         after.generation == before.generation && after.owner == before.owner &&
         after.cause == before.cause && after.attempts == before.attempts &&
         after.policies == before.policies && after.fingerprint == before.fingerprint &&
         after.created == before.created && after.claimed == before.claimed;
}

/// The entry of an operation id: its last eight bytes. Two ids of one entry, should they ever meet,
/// cost the second one its entry: it is found by a search.
std::int64_t operation_entry(const OperationId& id) {
  std::int64_t entry = 0;
  std::memcpy(&entry, id.bytes().data() + 8, sizeof entry);
  return entry;
}

void bind_id(Statement& statement, int parameter, std::int64_t id_or_zero) {
  id_or_zero != 0 ? statement.bind(parameter, id_or_zero) : statement.bind_null(parameter);
}

template <class Enum>
std::optional<Enum> known(std::int64_t value, Enum first, Enum last) {
  if (value < static_cast<std::int64_t>(first) || value > static_cast<std::int64_t>(last)) {
    return std::nullopt;
  }
  return static_cast<Enum>(value);
}

}  // namespace

const char* RecordTable::columns() { return EINMAL_RECORD_COLUMNS; }

Result<RecordTable> RecordTable::prepare(Connection& connection, ProfileTable& profiles,
                                         Agenda& agenda) {
  RecordTable table(connection, profiles, agenda);
  Preparer prepare(connection);
  prepare(table.find_, find_sql);
  prepare(table.insert_, insert_sql);
  prepare(table.update_, update_sql);
  prepare(table.settle_, settle_sql);
  prepare(table.erase_, "DELETE FROM record WHERE id = ?1");
  prepare(table.add_result_, add_result_sql);
  prepare(table.drop_result_, "DELETE FROM result WHERE id = ?1");
  prepare(table.result_, result_sql);
  prepare(table.result_head_, result_head_sql);
  prepare(table.by_id_, by_id_sql);
  prepare(table.by_operation_, by_operation_sql);
  prepare(table.add_operation_, "INSERT OR IGNORE INTO operation (id, record) VALUES (?1, ?2)");
  prepare(table.drop_operation_, "DELETE FROM operation WHERE id = ?1 AND record = ?2");
  if (auto failed = prepare.failed()) return failure(failed->code, failed->message);
  return table;
}

Result<std::optional<RecordTable::Located>> RecordTable::by_id(std::int64_t which) {
  by_id_.bind(1, which);
  return located(by_id_, true);
}

Result<std::optional<RecordTable::Located>> RecordTable::by_operation(const OperationId& which,
                                                                      bool with_body) {
  by_operation_.bind(1, operation_entry(which));
  by_operation_.bind_blob(2, which.bytes());
  return located(by_operation_, with_body);
}

Result<std::optional<RecordTable::Located>> RecordTable::located(Statement& statement,
                                                                 bool with_body) {
  ResetAtEnd reset(statement);
  auto stepped = statement.step();
  if (!stepped) return pass_on(stepped);
  if (!*stepped) return std::optional<Located>();
  auto row = decode(statement);
  if (!row) return pass_on(row);
  auto scope = decode_scope(statement);
  if (!scope) return pass_on(scope);
  if (row->result_id != 0) {
    auto loaded = result(row->result_id, with_body ? Load::whole : Load::without_body);
    if (!loaded) return pass_on(loaded);
    row->record->result = std::move(*loaded);
  }
  return std::optional<Located>(std::in_place, std::move(*row), std::move(*scope));
}

Result<Row> RecordTable::find(std::int64_t digest, const Scope& scope, Load load) {
  Row absent;
  {
    ResetAtEnd reset(find_);
    find_.bind(1, digest);
    while (true) {
      auto row = find_.step();
      if (!row) return pass_on(row);
      if (!*row) return absent;
      const bool same = find_.bytes(key) == scope.key() && find_.bytes(caller) == scope.caller() &&
                        find_.bytes(operation) == scope.operation() &&
                        find_.bytes(name_space) == scope.name_space();
      if (same) break;
      absent.nth = find_.integer(nth) + 1;  // rows come in the order of the index: nth ascending
    }
    auto found = decode(find_);
    if (!found) return found;
    absent = std::move(*found);
  }
  if (absent.result_id != 0 && load != Load::without_result) {
    auto loaded = result(absent.result_id, load);
    if (!loaded) return pass_on(loaded);
    absent.record->result = std::move(*loaded);
  }
  return absent;
}

Result<Row> RecordTable::decode(const Statement& row) {
  Row out;
  out.id = row.integer(id);
  out.nth = row.integer(nth);
  out.result_id = row.integer(result_id);
  out.findable_by_id = row.integer(findable_by_id) != 0;
  Record& record = out.record.emplace();

  const auto known_state = known(row.integer(state), State::processing, State::freed);
  if (!known_state) return damaged(ErrorCode::incompatible, out.id, "a state");
  record.state = *known_state;
  const auto on_expiry =
      known(row.integer(on_lease_expiry), OnLeaseExpiry::uncertain, OnLeaseExpiry::takeover);
  const auto after = known(row.integer(after_expiry), AfterExpiry::claim_anew, AfterExpiry::refuse);
  if (!on_expiry || !after) return damaged(ErrorCode::incompatible, out.id, "a policy");
  const auto why = known(row.integer(cause), UncertainCause::none, UncertainCause::operator_doubt);
  const auto by = known(row.integer(settled_by), SettledBy::nobody, SettledBy::reconciler);
  if (!why || !by) return damaged(ErrorCode::incompatible, out.id, "a cause or settler");

  auto profile_id = profiles_->id_of(row.integer(profile));
  if (!profile_id) return pass_on(profile_id);
  const auto digest = digest_from(row.bytes(fingerprint));
  const auto token = OwnerToken::from_bytes(row.bytes(owner));
  const auto op = OperationId::from_bytes(row.bytes(operation_id));
  const std::int64_t gen = row.integer(generation);
  if (!digest || !token || !op || gen <= 0) {
    return damaged(ErrorCode::corrupt, out.id, "a digest, owner, operation id or generation");
  }
  record.fingerprint = Fingerprint{*profile_id, *digest};
  record.owner = *token;
  record.operation_id = *op;
  record.generation = Generation{static_cast<std::uint64_t>(gen)};
  record.attempts = static_cast<std::uint32_t>(row.integer(attempts));

  if (!row.is_null(lease)) record.policies.lease = Duration(row.integer(lease));
  record.policies.on_lease_expiry = *on_expiry;
  record.policies.retention = Duration(row.integer(retention));
  record.policies.after_expiry = *after;
  record.policies.tombstone = Duration(row.integer(tombstone));
  if (!row.is_null(lease_end)) {
    const auto boot = BootId::from_bytes(row.bytes(lease_boot));
    if (!boot) return damaged(ErrorCode::corrupt, out.id, "a lease");
    record.lease = Lease{BootTime(Duration(row.integer(lease_end))), *boot};
  }
  record.cause = *why;
  record.settled_by = *by;
  record.created = wall_time(row.integer(created));
  record.claimed = wall_time(row.integer(claimed));
  record.settled = optional_wall_time(row, settled);
  record.expires = optional_wall_time(row, expires);
  return out;
}

Result<Scope> RecordTable::decode_scope(const Statement& row) {
  auto scope = Scope::make(std::string(row.bytes(name_space)), std::string(row.bytes(caller)),
                           std::string(row.bytes(operation)), std::string(row.bytes(key)));
  if (!scope) return damaged(ErrorCode::corrupt, row.integer(id), "a scope");
  return scope;
}

Result<void> RecordTable::put(Row& row, std::int64_t digest, const Scope& scope, Record record) {
  if (row.record && row.record->operation_id != record.operation_id) {
    if (auto erased = erase(row); !erased) return erased;
  }
  if (auto placed = put_result(row, record); !placed) return placed;
  auto written = row.record ? update(row, record) : insert(row, digest, scope, record);
  if (!written) return written;
  auto noted = agenda_->changed(row.id, row.record ? &*row.record : nullptr, &record);
  if (!noted) return noted;
  row.record = std::move(record);
  return {};
}

Result<void> RecordTable::put_result(Row& row, const Record& record) {
  if (row.result_id != 0) {
    if (record.result && row.record && record.result == row.record->result) return {};
    if (auto dropped = drop_result(row.result_id); !dropped) return dropped;
    row.result_id = 0;
  }
  if (!record.result) return {};
  auto added = add_result(*record.result);
  if (!added) return pass_on(added);
  row.result_id = *added;
  return {};
}

Result<void> RecordTable::drop_result(std::int64_t which) {
  drop_result_.bind(1, which);
  return drop_result_.run();
}

Result<void> RecordTable::erase(Row& row) {
  if (row.result_id != 0) {
    if (auto dropped = drop_result(row.result_id); !dropped) return dropped;
    row.result_id = 0;
  }
  erase_.bind(1, row.id);
  if (auto erased = erase_.run(); !erased) return erased;
  if (connection_->rows_changed() != 1) return damaged(ErrorCode::corrupt, row.id, "its own row");
  if (row.findable_by_id) {
    drop_operation_.bind(1, operation_entry(row.record->operation_id));
    drop_operation_.bind(2, row.id);
    if (auto dropped = drop_operation_.run(); !dropped) return dropped;
  }
  if (auto noted = agenda_->changed(row.id, &*row.record, nullptr); !noted) return noted;
  row.record.reset();
  row.id = 0;
  return {};
}

Result<void> RecordTable::insert(Row& row, std::int64_t digest, const Scope& scope,
                                 const Record& record) {
  if (auto bound = bind_record(insert_, record, row.result_id); !bound) return bound;
  insert_.bind(23, digest);
  insert_.bind(24, row.nth);
  insert_.bind_text(25, scope.name_space());
  insert_.bind_text(26, scope.caller());
  insert_.bind_text(27, scope.operation());
  insert_.bind_text(28, scope.key());
  insert_.bind_blob(29, record.operation_id.bytes());
  insert_.bind(30, row.findable_by_id ? 1 : 0);
  row.id = static_cast<std::int64_t>(number(record.generation));
  insert_.bind(31, row.id);
  if (auto inserted = insert_.run(); !inserted) return inserted;
  if (!row.findable_by_id) return {};
  add_operation_.bind(1, operation_entry(record.operation_id));
  add_operation_.bind(2, row.id);
  return add_operation_.run();
}

Result<void> RecordTable::update(Row& row, const Record& record) {
  const bool settles = only_settles(*row.record, record);
  Statement& statement = settles ? settle_ : update_;
  if (settles) {
    statement.bind(1, static_cast<std::int64_t>(record.state));
    statement.bind(2, static_cast<std::int64_t>(record.settled_by));
    bind_optional(statement, 3, record.settled);
    bind_optional(statement, 4, record.expires);
    bind_optional(statement, 5, sweep_time(record));
    bind_id(statement, 6, row.result_id);
    statement.bind(7, bytes_of(record));
    statement.bind(8, row.id);
  } else {
    if (auto bound = bind_record(statement, record, row.result_id); !bound) return bound;
    statement.bind(23, row.id);
  }
  if (auto updated = statement.run(); !updated) return updated;
  if (connection_->rows_changed() != 1) return damaged(ErrorCode::corrupt, row.id, "its own row");
  return {};
}

// Parameters 1 to 22 of insert_sql and update_sql.
Result<void> RecordTable::bind_record(Statement& statement, const Record& record,
                                      std::int64_t result) {
  auto profile_number = profiles_->number_of(record.fingerprint.profile);
  if (!profile_number) return pass_on(profile_number);
  int at = 1;
  statement.bind(at++, static_cast<std::int64_t>(record.state));
  statement.bind(at++, static_cast<std::int64_t>(number(record.generation)));
  statement.bind_blob(at++, record.owner.bytes());
  statement.bind(at++, record.attempts);
  statement.bind(at++, *profile_number);
  statement.bind_blob(at++, as_bytes(record.fingerprint.digest));
  bind_optional(statement, at++, record.policies.lease);
  statement.bind(at++, static_cast<std::int64_t>(record.policies.on_lease_expiry));
  statement.bind(at++, record.policies.retention.count());
  statement.bind(at++, static_cast<std::int64_t>(record.policies.after_expiry));
  statement.bind(at++, record.policies.tombstone.count());
  if (record.lease) {
    statement.bind(at++, record.lease->end.time_since_epoch().count());
    statement.bind_blob(at++, record.lease->boot.bytes());
  } else {
    statement.bind_null(at++);
    statement.bind_null(at++);
  }
  statement.bind(at++, static_cast<std::int64_t>(record.cause));
  statement.bind(at++, static_cast<std::int64_t>(record.settled_by));
  statement.bind(at++, as_integer(record.created));
  statement.bind(at++, as_integer(record.claimed));
  bind_optional(statement, at++, record.settled);
  bind_optional(statement, at++, record.expires);
  bind_optional(statement, at++, sweep_time(record));
  bind_id(statement, at++, result);
  statement.bind(at, bytes_of(record));
  return {};
}

Result<std::int64_t> RecordTable::add_result(const StoredResult& result) {
  add_result_.bind(1, result.status);
  add_result_.bind_blob(2, result.headers);
  add_result_.bind_blob(3, result.body);
  add_result_.bind(4, static_cast<std::int64_t>(result.body_kept));
  add_result_.bind(5, static_cast<std::int64_t>(result.effect));
  add_result_.bind(6, result.representation_version);
  result.resource_id ? add_result_.bind_text(7, *result.resource_id) : add_result_.bind_null(7);
  if (auto added = add_result_.run(); !added) return pass_on(added);
  return connection_->last_insert_id();
}

Result<StoredResult> RecordTable::result(std::int64_t which, Load load) {
  Statement& statement = load == Load::whole ? result_ : result_head_;
  ResetAtEnd reset(statement);
  statement.bind(1, which);
  auto row = statement.step();
  if (!row) return pass_on(row);
  if (!*row) return damaged(ErrorCode::corrupt, which, "its result");
  StoredResult out;
  const auto kept = known(statement.integer(1), BodyKept::kept, BodyKept::by_choice);
  const auto effect = known(statement.integer(2), Effect::known, Effect::unknown);
  if (!kept || !effect) return damaged(ErrorCode::incompatible, which, "a result");
  out.status = static_cast<int>(statement.integer(0));
  out.body_kept = *kept;
  out.effect = *effect;
  out.representation_version = static_cast<int>(statement.integer(3));
  if (!statement.is_null(4)) out.resource_id.emplace(statement.bytes(4));
  if (load == Load::whole) {
    out.headers = statement.bytes(5);
    out.body = statement.bytes(6);
  }
  return out;
}

tl::unexpected<Error> RecordTable::damaged(ErrorCode code, std::int64_t which,
                                           const char* what) const {
  if (code == ErrorCode::incompatible) {
    return failure(code, fmt::format("{}: row {} has {} that this version does not know; use the "
                                     "newer program that wrote it",
                                     connection_->path(), which, what));
  }
  return failure(code,
                 fmt::format("{}: row {} contradicts itself in {}; run PRAGMA integrity_check "
                             "and restore from a backup",
                             connection_->path(), which, what));
}

}  // namespace einmal::sqlite
