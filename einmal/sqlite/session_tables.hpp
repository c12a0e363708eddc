#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "einmal/base/bytes.hpp"
#include "einmal/base/error.hpp"
#include "einmal/base/random.hpp"
#include "einmal/core/clock_guard.hpp"
#include "einmal/core/record.hpp"
#include "einmal/core/scope.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace einmal::sqlite {

/// The error of the last call on `handle`; `doing` begins its message.
Error session_error(sqlite3* handle, int result_code, std::string_view doing);

/// A statement on a handle that is not ours. Kept and used many times.
class BorrowedStatement {
 public:
  BorrowedStatement() = default;
  /// Prepares when it is first used. `sql` outlives it.
  BorrowedStatement(sqlite3* handle, const char* sql) : handle_(handle), sql_(sql) {}
  BorrowedStatement(BorrowedStatement&& other) noexcept;
  BorrowedStatement& operator=(BorrowedStatement&& other) noexcept;
  ~BorrowedStatement();

  BorrowedStatement& bind(int parameter, std::int64_t value);
  BorrowedStatement& bind(int parameter, const std::optional<std::int64_t>& value);
  /// Not copied: it must stay until `reset`.
  BorrowedStatement& bind(int parameter, BytesView value);

  /// true: a row stands ready; false: done.
  Result<bool> step();
  /// Steps to the end and resets; the result code of SQLite.
  int run();
  void reset();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  BytesView bytes(int column) const;

 private:
  int prepare();
  sqlite3* handle_ = nullptr;
  const char* sql_ = "";
  sqlite3_stmt* statement_ = nullptr;
};

/// What the whole file has one of.
struct SessionState {
  std::int64_t generation = 0;
  ClockGuard::State clock;
};

/// A record and the row that holds it.
struct SessionRow {
  std::int64_t id = 0;  ///< Without a record: the first free place for it.
  std::optional<Record> record;
};

/// The tables einmal_* in a file of the caller's. Only final records are ever in it: a claim that
/// was not settled in its transaction never was. Inside a write transaction, but for `ensure`.
class SessionTables {
 public:
  explicit SessionTables(sqlite3* handle);

  /// Whether the tables are there; looks only. Errors: incompatible, for those of a newer version.
  Result<bool> are_there();
  /// Makes the tables if they are not there. Errors: incompatible, for those of a newer version.
  Result<void> ensure(Random& random);

  Result<SessionState> state();
  Result<void> set_state(const SessionState& state);

  Result<SessionRow> find(const Scope& scope);
  Result<void> put(const SessionRow& row, const Scope& scope, const Record& record);
  Result<void> erase(std::int64_t id);
  /// Takes the result from a tombstone that ends at `end`.
  Result<void> strip(std::int64_t id, WallTime end);
  /// The row that sweep has to look at first, with its record; nothing: none is due.
  Result<std::optional<SessionRow>> due(WallTime now);

 private:
  Result<void> check_version();
  std::int64_t digest(const Scope& scope) const;
  Result<void> written(int result_code, std::string_view doing);

  sqlite3* handle_;
  Bytes secret_;
  BorrowedStatement state_, set_state_, find_, put_, erase_, strip_, due_;
};

}  // namespace einmal::sqlite
