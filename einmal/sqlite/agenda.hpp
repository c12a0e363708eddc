#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "einmal/core/record.hpp"
#include "einmal/sqlite_file/connection.hpp"
#include "einmal/sqlite_file/statement.hpp"

namespace einmal::sqlite {

/// When Sweep next has something to do about `record`; nothing while it is open.
std::optional<WallTime> sweep_time(const Record& record);

/// Which records need attention, so that nobody has to look at all of them: the uncertain ones, the
/// processing ones, and the others by the time at which Sweep has something to do.
///
/// An index entry that comes with the claim and goes with the completion would cost each pair an
/// eighth of its time, and most records are settled within milliseconds. So these are kept for the
/// records up to `patrolled` only (ids grow, always); `patrol` enters the newer ones in bulk before
/// anybody asks. Uncertain records are entered at once.
class Agenda {
 public:
  static Result<Agenda> prepare(sqlite_file::Connection& connection);

  /// What follows is for write transactions. `patrolled` is known anew in each one that may come
  /// after another process's.
  Result<void> read_patrolled();
  /// The record `id` was `before` and is `after`; nothing: not there.
  Result<void> changed(std::int64_t id, const Record* before, const Record* after);
  struct Patrolled {
    bool any = false;   ///< Something was entered.
    bool more = false;  ///< There are newer records still.
  };
  /// Enters up to `rows` newer records.
  Result<Patrolled> patrol(std::int64_t rows);

  /// Records that Overdue may change, up to `limit`.
  Result<std::vector<std::int64_t>> overdue(const Now& now, std::size_t limit);
  /// Records that Sweep has to look at, longest due first.
  Result<std::vector<std::int64_t>> due_for_sweep(WallTime now, std::size_t limit);

 private:
  explicit Agenda(sqlite_file::Connection& connection) : connection_(&connection) {}
  static Result<void> run(sqlite_file::Statement& statement, std::int64_t record);

  sqlite_file::Connection* connection_;
  sqlite_file::Statement add_uncertain_, drop_uncertain_, add_open_, drop_open_, add_sweep_,
      drop_sweep_, patrolled_sql_, range_, enter_open_, enter_sweep_, set_patrolled_, overdue_,
      due_;
  std::int64_t patrolled_ = 0;
};

}  // namespace einmal::sqlite
