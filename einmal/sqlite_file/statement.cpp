#include "einmal/sqlite_file/statement.hpp"

#include <sqlite3.h>

#include "einmal/sqlite_file/connection.hpp"

namespace einmal::sqlite_file {

Statement::~Statement() { sqlite3_finalize(handle_); }

void Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(handle_, parameter, value);
}

void Statement::bind_null(int parameter) { sqlite3_bind_null(handle_, parameter); }

// A null pointer would bind NULL: an empty view may carry one.
void Statement::bind_text(int parameter, BytesView value) {
  sqlite3_bind_text(handle_, parameter, value.empty() ? "" : value.data(),
                    static_cast<int>(value.size()), SQLITE_STATIC);
}

void Statement::bind_blob(int parameter, BytesView value) {
  sqlite3_bind_blob(handle_, parameter, value.empty() ? "" : value.data(),
                    static_cast<int>(value.size()), SQLITE_STATIC);
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const Error error = connection_->error(code, "run a statement");
  return failure(error.code, error.message);
}

Result<void> Statement::run() {
  int code = SQLITE_ROW;
  while (code == SQLITE_ROW) code = sqlite3_step(handle_);
  if (code == SQLITE_DONE) {
    sqlite3_reset(handle_);
    return {};
  }
  const Error error = connection_->error(code, "run a statement");
  sqlite3_reset(handle_);
  return failure(error.code, error.message);
}

void Statement::reset() { sqlite3_reset(handle_); }

bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }

BytesView Statement::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  const int size = sqlite3_column_bytes(handle_, column);
  return data ? BytesView(data, static_cast<std::size_t>(size)) : BytesView();
}

}  // namespace einmal::sqlite_file
