#include "einmal/postgres/connection.hpp"

#include <libpq-fe.h>

#include <array>
#include <string_view>

namespace einmal::postgres {

namespace {

/// A class of SQLSTATEs, by their first characters, and what its receiver should do.
struct Kind {
  std::string_view prefix;
  ErrorCode code;
  std::string_view advice;
};

// The first that fits. Appendix A of the PostgreSQL manual.
constexpr std::array kinds{
    Kind{"08", ErrorCode::unavailable, ""},
    Kind{"57", ErrorCode::unavailable, ""},  // shutting down, cancelled, starting up
    Kind{"53", ErrorCode::unavailable, ""},  // disk, memory or connections used up
    Kind{"40", ErrorCode::unavailable, ""},  // serialization, deadlock
    Kind{"55", ErrorCode::unavailable, ""},  // lock not available
    Kind{"25006", ErrorCode::unavailable, "; this server is read-only, name the primary"},
    Kind{"42501", ErrorCode::incompatible,
         "; grant the role einmal_gateway, or run einmal migrate"},
    Kind{"3F000", ErrorCode::incompatible, "; run einmal migrate"},
    Kind{"42P01", ErrorCode::incompatible, "; run einmal migrate"},
    Kind{"42883", ErrorCode::incompatible, "; run einmal migrate"},
    Kind{"28", ErrorCode::incompatible, "; check user and password"},
    Kind{"3D000", ErrorCode::incompatible, "; create the database"},
    Kind{"XX", ErrorCode::corrupt, ""},
    Kind{"22", ErrorCode::invalid, ""},
    Kind{"23", ErrorCode::invalid, ""},  // a constraint
    Kind{"54", ErrorCode::invalid, ""},  // too large
};

std::string trimmed(const char* text) {
  std::string out = text ? text : "";
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return out;
}

void drop_notice(void*, const pg_result*) {}

}  // namespace

void CloseConnection::operator()(pg_conn* connection) const { PQfinish(connection); }
void ClearResult::operator()(pg_result* result) const { PQclear(result); }

Result<ConnectionHandle> connect(const std::string& conninfo) {
  const char* keywords[] = {"connect_timeout", "dbname", nullptr};
  const char* values[] = {"5", conninfo.c_str(), nullptr};
  ConnectionHandle connection(PQconnectdbParams(keywords, values, 1));
  if (PQstatus(connection.get()) != CONNECTION_OK)
    return tl::unexpected(connection_error(connection.get(), "postgres: cannot connect"));
  PQsetNoticeReceiver(connection.get(), drop_notice, nullptr);
  return connection;
}

Result<ResultHandle> run(pg_conn* connection, const char* what, const char* sql,
                         const Parameters& parameters) {
  std::vector<const char*> values;
  std::vector<int> lengths, formats(parameters.values().size(), 1);
  for (const Value& value : parameters.values()) {
    values.push_back(value ? value->data() : nullptr);
    lengths.push_back(value ? static_cast<int>(value->size()) : 0);
  }
  ResultHandle result(PQexecParams(connection, sql, parameters.count(), parameters.types().data(),
                                   values.data(), lengths.data(), formats.data(), 1));
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    return tl::unexpected(result ? error_of(result.get(), what)
                                 : connection_error(connection, what));
  return result;
}

Result<ResultHandle> run_script(pg_conn* connection, const char* what, const std::string& sql) {
  ResultHandle result(PQexec(connection, sql.c_str()));
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    return tl::unexpected(result ? error_of(result.get(), what)
                                 : connection_error(connection, what));
  return result;
}

std::string sqlstate_of(const pg_result* result) {
  const char* state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  return state ? state : "";
}

Error error_of(const pg_result* result, const char* what) {
  const std::string state = sqlstate_of(result);
  // Without a state libpq itself speaks: the connection is lost.
  if (state.empty())
    return {ErrorCode::unavailable,
            std::string(what) + ": " + trimmed(PQresultErrorMessage(result))};
  std::string message = std::string(what) + ": " +
                        trimmed(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)) +
                        " (SQLSTATE " + state + ")";
  for (const Kind& kind : kinds) {
    if (std::string_view(state).starts_with(kind.prefix))
      return {kind.code, message + std::string(kind.advice)};
  }
  return {ErrorCode::internal, message};
}

Error connection_error(const pg_conn* connection, const char* what) {
  return {ErrorCode::unavailable, std::string(what) + ": " + trimmed(PQerrorMessage(connection))};
}

}  // namespace einmal::postgres
