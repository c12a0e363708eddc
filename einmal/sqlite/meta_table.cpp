#include "einmal/sqlite/meta_table.hpp"

#include <fmt/format.h>

#include "einmal/sqlite/columns.hpp"

namespace einmal::sqlite {

using sqlite_file::Connection;
using sqlite_file::ResetAtEnd;
using sqlite_file::Statement;

namespace {

tl::unexpected<Error> missing(const Connection& connection, std::string_view what) {
  return failure(ErrorCode::corrupt,
                 fmt::format("{}: the row of {} is missing or damaged; restore from a backup",
                             connection.path(), what));
}

}  // namespace

Result<MetaTable> MetaTable::prepare(Connection& connection) {
  MetaTable table(connection);
  Preparer prepare(connection);
  prepare(table.read_, "SELECT value FROM meta WHERE name = ?1");
  prepare(table.add_, "INSERT OR IGNORE INTO meta (name, value) VALUES (?1, ?2)");
  prepare(table.generation_, "SELECT generation FROM counter WHERE one = 1");
  prepare(table.set_generation_, "UPDATE counter SET generation = ?1 WHERE one = 1");
  prepare(table.clock_, "SELECT wall, boot, boot_id, paused FROM clock WHERE one = 1");
  prepare(
      table.set_clock_,
      "INSERT OR REPLACE INTO clock (one, wall, boot, boot_id, paused) VALUES (1, ?1, ?2, ?3, ?4)");
  prepare(table.batch_, "SELECT batch FROM writer WHERE id = ?1");
  prepare(table.set_batch_,
          "INSERT INTO writer (id, batch, opened) VALUES (?1, ?2, ?3) "
          "ON CONFLICT (id) DO UPDATE SET batch = excluded.batch");
  prepare(table.remove_writer_, "DELETE FROM writer WHERE id = ?1");
  prepare(table.data_version_, "PRAGMA data_version");
  if (auto failed = prepare.failed()) return failure(failed->code, failed->message);
  return table;
}

Result<Bytes> MetaTable::secret(std::string_view name, std::size_t size, Random& random) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    {
      ResetAtEnd reset(read_);
      read_.bind_text(1, name);
      auto row = read_.step();
      if (!row) return pass_on(row);
      if (*row) {
        if (read_.bytes(0).size() != size) return missing(*connection_, name);
        return Bytes(read_.bytes(0));
      }
    }
    Bytes drawn(size, '\0');
    random.fill(drawn.data(), drawn.size());
    add_.bind_text(1, name);
    add_.bind_blob(2, drawn);
    if (auto added = add_.run(); !added) return pass_on(added);
  }
  return missing(*connection_, name);
}

Result<std::int64_t> MetaTable::oldest_writer() {
  ResetAtEnd reset(read_);
  read_.bind_text(1, BytesView("oldest_writer"));
  auto row = read_.step();
  if (!row) return pass_on(row);
  if (!*row) return missing(*connection_, "oldest_writer");
  return read_.integer(0);
}

Result<std::int64_t> MetaTable::generation() {
  ResetAtEnd reset(generation_);
  auto row = generation_.step();
  if (!row) return pass_on(row);
  if (!*row) return missing(*connection_, "the generation counter");
  return generation_.integer(0);
}

Result<void> MetaTable::set_generation(std::int64_t last) {
  set_generation_.bind(1, last);
  return set_generation_.run();
}

Result<ClockGuard::State> MetaTable::clock() {
  ResetAtEnd reset(clock_);
  auto row = clock_.step();
  if (!row) return pass_on(row);
  if (!*row) return ClockGuard::State{};
  const auto boot_id = BootId::from_bytes(clock_.bytes(2));
  if (!boot_id) return missing(*connection_, "the clock guard");
  ClockGuard::State state;
  state.last =
      ClockLook{wall_time(clock_.integer(0)), BootTime(Duration(clock_.integer(1))), *boot_id};
  state.paused = clock_.integer(3) != 0;
  return state;
}

Result<void> MetaTable::set_clock(const ClockGuard::State& state) {
  if (!state.last) return {};
  set_clock_.bind(1, as_integer(state.last->wall));
  set_clock_.bind(2, state.last->boot.time_since_epoch().count());
  set_clock_.bind_blob(3, state.last->boot_id.bytes());
  set_clock_.bind(4, state.paused ? 1 : 0);
  return set_clock_.run();
}

Result<std::optional<std::int64_t>> MetaTable::last_batch(std::int64_t writer) {
  ResetAtEnd reset(batch_);
  batch_.bind(1, writer);
  auto row = batch_.step();
  if (!row) return pass_on(row);
  if (!*row) return std::optional<std::int64_t>();
  return std::optional<std::int64_t>(batch_.integer(0));
}

Result<void> MetaTable::set_batch(std::int64_t writer, std::int64_t batch, WallTime now) {
  set_batch_.bind(1, writer);
  set_batch_.bind(2, batch);
  set_batch_.bind(3, as_integer(now));
  return set_batch_.run();
}

Result<void> MetaTable::remove_writer(std::int64_t writer) {
  remove_writer_.bind(1, writer);
  return remove_writer_.run();
}

Result<std::int64_t> MetaTable::data_version() {
  ResetAtEnd reset(data_version_);
  auto row = data_version_.step();
  if (!row) return pass_on(row);
  return data_version_.integer(0);
}

}  // namespace einmal::sqlite
