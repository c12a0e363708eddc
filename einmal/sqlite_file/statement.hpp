#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "einmal/base/bytes.hpp"
#include "einmal/base/error.hpp"

struct sqlite3_stmt;

namespace einmal::sqlite_file {

class Connection;

/// A prepared statement, kept and used many times. Parameters and columns count as in SQLite:
/// parameters from 1, columns from 0. Must not outlive its Connection.
class Statement {
 public:
  Statement() = default;
  Statement(Statement&& other) noexcept
      : connection_(other.connection_), handle_(std::exchange(other.handle_, nullptr)) {}
  Statement& operator=(Statement&& other) noexcept {
    std::swap(connection_, other.connection_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Statement();

  void bind(int parameter, std::int64_t value);
  void bind_null(int parameter);
  /// The bytes are not copied: they must stay until `reset`. So a temporary does not compile.
  void bind_text(int parameter, BytesView value);
  void bind_text(int parameter, std::string&& value) = delete;
  void bind_blob(int parameter, BytesView value);
  void bind_blob(int parameter, std::string&& value) = delete;

  /// true: a row stands ready; false: done.
  Result<bool> step();
  /// Steps to the end and resets.
  Result<void> run();
  /// Ready for new parameters. Gives up the row and the locks that went with it.
  void reset();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  /// Valid until the next step or reset.
  BytesView bytes(int column) const;

 private:
  friend class Connection;
  Statement(Connection& connection, sqlite3_stmt* handle)
      : connection_(&connection), handle_(handle) {}

  Connection* connection_ = nullptr;
  sqlite3_stmt* handle_ = nullptr;
};

/// Resets a statement at the end of a block, whichever way it is left.
class ResetAtEnd {
 public:
  explicit ResetAtEnd(Statement& statement) : statement_(statement) {}
  ResetAtEnd(const ResetAtEnd&) = delete;
  ResetAtEnd& operator=(const ResetAtEnd&) = delete;
  ~ResetAtEnd() { statement_.reset(); }

 private:
  Statement& statement_;
};

}  // namespace einmal::sqlite_file
