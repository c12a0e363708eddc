#include "einmal/postgres/server_traits.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <chrono>

#include "einmal/postgres/schema_steps.hpp"

namespace einmal::postgres {

namespace {

/// A pooler answers with a backend id of its own at connecting and another's at asking.
bool is_pooled(pg_conn* connection) {
  auto rows = run(connection, "postgres", "select pg_backend_pid()");
  return rows && Row(rows->get(), 0).integer(0) != PQbackendPID(connection);
}

/// A pooler that shares sessions accepts LISTEN and delivers nothing.
bool proves_listen(const std::string& conninfo, pg_conn* sender) {
  auto listener = connect(conninfo);
  if (!listener || !run_script(listener->get(), "postgres", "listen einmal_proof")) return false;
  if (!run_script(sender, "postgres", "notify einmal_proof")) return false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) {
    pollfd descriptor{PQsocket(listener->get()), POLLIN, 0};
    poll(&descriptor, 1, 100);
    if (PQconsumeInput(listener->get()) != 1) return false;
    if (PGnotify* notify = PQnotifies(listener->get())) {
      PQfreemem(notify);
      return true;
    }
  }
  return false;
}

}  // namespace

ServerTraits server_traits(const std::string& conninfo, pg_conn* connection) {
  return {is_pooled(connection), proves_listen(conninfo, connection)};
}

Result<void> check_schema_version(pg_conn* connection) {
  auto rows = run(connection, "postgres", "select version, min_writer from einmal.version()");
  if (!rows) return pass_on(rows);
  const Row row(rows->get(), 0);
  if (row.integer(0) < schema_version())
    return failure(ErrorCode::incompatible,
                   "postgres: the schema has version " + std::to_string(row.integer(0)) +
                       ", this program needs " + std::to_string(schema_version()) +
                       "; run einmal migrate");
  if (row.integer(1) > schema_version())
    return failure(ErrorCode::incompatible, "postgres: only programs that know schema version " +
                                                std::to_string(row.integer(1)) +
                                                " may write here; use a newer einmal");
  return {};
}

}  // namespace einmal::postgres
