#pragma once

#include <memory>
#include <string>

#include "einmal/base/error.hpp"
#include "einmal/postgres/wire.hpp"

struct pg_conn;
struct pg_result;

namespace einmal::postgres {

struct CloseConnection {
  void operator()(pg_conn* connection) const;
};
struct ClearResult {
  void operator()(pg_result* result) const;
};
using ConnectionHandle = std::unique_ptr<pg_conn, CloseConnection>;
using ResultHandle = std::unique_ptr<pg_result, ClearResult>;

/// Connects and waits (as long as `connect_timeout` of `conninfo` says, 5 s without). Notices are
/// dropped. Errors: invalid (the string), unavailable.
Result<ConnectionHandle> connect(const std::string& conninfo);

/// Runs one statement with parameters and waits; the result is in binary format. `what` begins an
/// error's message.
Result<ResultHandle> run(pg_conn* connection, const char* what, const char* sql,
                         const Parameters& parameters = {});

/// Runs one or several statements without parameters. Errors as `run`.
Result<ResultHandle> run_script(pg_conn* connection, const char* what, const std::string& sql);

/// The error of a failed result, by its SQLSTATE: what the receiver should do. Never holds values
/// of a statement: only its SQLSTATE, primary message and hint.
Error error_of(const pg_result* result, const char* what);

/// The error of a broken connection.
Error connection_error(const pg_conn* connection, const char* what);

/// Five characters; empty without one.
std::string sqlstate_of(const pg_result* result);

}  // namespace einmal::postgres
