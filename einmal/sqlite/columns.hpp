#pragma once

#include <cstring>
#include <optional>

#include "einmal/core/record.hpp"
#include "einmal/sqlite_file/connection.hpp"
#include "einmal/sqlite_file/statement.hpp"

/// Small helpers between values of the core and columns.

namespace einmal::sqlite {

inline BytesView as_bytes(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

inline std::optional<Digest> digest_from(BytesView bytes) {
  Digest digest;
  if (bytes.size() != digest.size()) return std::nullopt;
  std::memcpy(digest.data(), bytes.data(), bytes.size());
  return digest;
}

inline std::int64_t as_integer(WallTime at) { return at.time_since_epoch().count(); }
inline WallTime wall_time(std::int64_t us) { return WallTime(Duration(us)); }

inline void bind_optional(sqlite_file::Statement& statement, int parameter,
                          const std::optional<WallTime>& at) {
  at ? statement.bind(parameter, as_integer(*at)) : statement.bind_null(parameter);
}
inline void bind_optional(sqlite_file::Statement& statement, int parameter,
                          const std::optional<Duration>& length) {
  length ? statement.bind(parameter, length->count()) : statement.bind_null(parameter);
}
inline std::optional<WallTime> optional_wall_time(const sqlite_file::Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return wall_time(row.integer(column));
}

/// Prepares a table's statements one after another and keeps the first failure.
class Preparer {
 public:
  explicit Preparer(sqlite_file::Connection& connection) : connection_(connection) {}
  void operator()(sqlite_file::Statement& into, std::string_view sql) {
    if (failed_) return;
    auto made = connection_.prepare(sql);
    if (made) {
      into = std::move(*made);
    } else {
      failed_ = made.error();
    }
  }
  const std::optional<Error>& failed() const { return failed_; }

 private:
  sqlite_file::Connection& connection_;
  std::optional<Error> failed_;
};

}  // namespace einmal::sqlite
