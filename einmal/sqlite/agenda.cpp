#include "einmal/sqlite/agenda.hpp"

#include <limits>

#include "einmal/sqlite/columns.hpp"

namespace einmal::sqlite {

using sqlite_file::Connection;
using sqlite_file::ResetAtEnd;
using sqlite_file::Statement;

namespace {

constexpr const char* range_sql = R"sql(
  SELECT max(id), count(*) FROM (SELECT id FROM record WHERE id > ?1 ORDER BY id LIMIT ?2))sql";

// CROSS JOIN keeps the order as written: left to itself SQLite walks through every record.
constexpr const char* overdue_sql = R"sql(
  SELECT record.id FROM agenda_open CROSS JOIN record ON record.id = agenda_open.record
  WHERE lease_end IS NOT NULL AND
    ((lease_boot <> ?2 OR lease_end <= ?1) AND on_lease_expiry = 1
     OR lease_boot = ?2 AND lease_end - lease > ?1)
  LIMIT ?3)sql";

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::min();

std::int64_t sweep_key(const Record* record) {
  if (!record) return never;
  const auto at = sweep_time(*record);
  return at ? as_integer(*at) : never;
}

bool in_state(const Record* record, State state) { return record && record->state == state; }

Result<std::vector<std::int64_t>> ids(Statement& statement) {
  ResetAtEnd reset(statement);
  std::vector<std::int64_t> found;
  while (true) {
    auto row = statement.step();
    if (!row) return pass_on(row);
    if (!*row) return found;
    found.push_back(statement.integer(0));
  }
}

}  // namespace

std::optional<WallTime> sweep_time(const Record& record) {
  if (!record.expires) return std::nullopt;
  const bool settled = record.state == State::completed || record.state == State::failed;
  const bool stripped_tombstone =
      settled && record.policies.after_expiry == AfterExpiry::refuse && !record.result;
  return stripped_tombstone ? *record.expires + record.policies.tombstone : *record.expires;
}

Result<Agenda> Agenda::prepare(Connection& connection) {
  Agenda agenda(connection);
  Preparer prepare(connection);
  prepare(agenda.add_uncertain_, "INSERT INTO agenda_uncertain VALUES (?1)");
  prepare(agenda.drop_uncertain_, "DELETE FROM agenda_uncertain WHERE record = ?1");
  prepare(agenda.add_open_, "INSERT INTO agenda_open VALUES (?1)");
  prepare(agenda.drop_open_, "DELETE FROM agenda_open WHERE record = ?1");
  prepare(agenda.add_sweep_, "INSERT INTO agenda_sweep (record, at) VALUES (?1, ?2)");
  prepare(agenda.drop_sweep_, "DELETE FROM agenda_sweep WHERE record = ?1 AND at = ?2");
  prepare(agenda.patrolled_sql_, "SELECT patrolled FROM counter WHERE one = 1");
  prepare(agenda.range_, range_sql);
  prepare(agenda.enter_open_,
          "INSERT INTO agenda_open SELECT id FROM record WHERE id > ?1 AND id <= ?2 AND state = 1");
  prepare(agenda.enter_sweep_,
          "INSERT INTO agenda_sweep SELECT sweep_at, id FROM record "
          "WHERE id > ?1 AND id <= ?2 AND sweep_at IS NOT NULL");
  prepare(agenda.set_patrolled_, "UPDATE counter SET patrolled = ?1 WHERE one = 1");
  prepare(agenda.overdue_, overdue_sql);
  prepare(agenda.due_, "SELECT record FROM agenda_sweep WHERE at <= ?1 ORDER BY at LIMIT ?2");
  if (auto failed = prepare.failed()) return failure(failed->code, failed->message);
  return agenda;
}

Result<void> Agenda::read_patrolled() {
  ResetAtEnd reset(patrolled_sql_);
  auto row = patrolled_sql_.step();
  if (!row) return pass_on(row);
  patrolled_ = *row ? patrolled_sql_.integer(0) : 0;
  return {};
}

Result<void> Agenda::run(Statement& statement, std::int64_t record) {
  statement.bind(1, record);
  return statement.run();
}

Result<void> Agenda::changed(std::int64_t id, const Record* before, const Record* after) {
  const bool was_uncertain = in_state(before, State::uncertain);
  if (was_uncertain != in_state(after, State::uncertain)) {
    auto moved = run(was_uncertain ? drop_uncertain_ : add_uncertain_, id);
    if (!moved) return moved;
  }
  if (id > patrolled_) return {};
  const bool was_open = in_state(before, State::processing);
  if (was_open != in_state(after, State::processing)) {
    if (auto moved = run(was_open ? drop_open_ : add_open_, id); !moved) return moved;
  }
  const std::int64_t old_time = sweep_key(before);
  const std::int64_t new_time = sweep_key(after);
  if (old_time == new_time) return {};
  if (old_time != never) {
    drop_sweep_.bind(2, old_time);
    if (auto dropped = run(drop_sweep_, id); !dropped) return dropped;
  }
  if (new_time == never) return {};
  add_sweep_.bind(2, new_time);
  return run(add_sweep_, id);
}

Result<Agenda::Patrolled> Agenda::patrol(std::int64_t rows) {
  std::int64_t last = 0;
  bool more = false;
  {
    ResetAtEnd reset(range_);
    range_.bind(1, patrolled_);
    range_.bind(2, rows);
    auto row = range_.step();
    if (!row) return pass_on(row);
    if (!*row || range_.is_null(0)) return Patrolled{};
    last = range_.integer(0);
    more = range_.integer(1) == rows;
  }
  for (Statement* enter : {&enter_open_, &enter_sweep_}) {
    enter->bind(1, patrolled_);
    enter->bind(2, last);
    if (auto entered = enter->run(); !entered) return pass_on(entered);
  }
  if (auto set = run(set_patrolled_, last); !set) return pass_on(set);
  patrolled_ = last;
  return Patrolled{true, more};
}

Result<std::vector<std::int64_t>> Agenda::overdue(const Now& now, std::size_t limit) {
  overdue_.bind(1, now.boot.time_since_epoch().count());
  overdue_.bind_blob(2, now.boot_id.bytes());
  overdue_.bind(3, static_cast<std::int64_t>(limit));
  return ids(overdue_);
}

Result<std::vector<std::int64_t>> Agenda::due_for_sweep(WallTime now, std::size_t limit) {
  due_.bind(1, as_integer(now));
  due_.bind(2, static_cast<std::int64_t>(limit));
  return ids(due_);
}

}  // namespace einmal::sqlite
