#pragma once

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "einmal/postgres/migrate.hpp"
#include "einmal/testing/postgres_server.hpp"

/// For tests: one server for the whole program, a fresh database with the schema for each test.
namespace einmal::test {

/// The server that this program's tests share; started by the first that needs it.
inline PostgresServer& shared_server() {
  static PostgresServer server{{.fsync = false,
                                .settings = {{"max_connections", "200"},
                                             {"max_prepared_transactions", "10"},
                                             {"wal_level", "replica"}}}};
  return server;
}

/// A blocking connection that speaks SQL text and answers with text, for tests.
class Client {
 public:
  explicit Client(const std::string& conninfo) : connection_(PQconnectdb(conninfo.c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK)
      throw std::runtime_error(PQerrorMessage(connection_));
    PQsetNoticeReceiver(
        connection_, [](void*, const PGresult*) {}, nullptr);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { PQfinish(connection_); }

  /// Runs `sql`; the first row of the last result, its columns separated by "|"; "" without a row;
  /// "ERROR sqlstate message" if it failed.
  std::string operator()(const std::string& sql) { return text(PQexec(connection_, sql.c_str())); }

  /// Every row, first column only.
  std::vector<std::string> column(const std::string& sql) {
    PGresult* result = PQexec(connection_, sql.c_str());
    std::vector<std::string> values;
    for (int i = 0; i < PQntuples(result); ++i) values.emplace_back(PQgetvalue(result, i, 0));
    PQclear(result);
    return values;
  }

  /// Sends `sql` and goes on; `wait` answers as operator().
  void send(const std::string& sql) { PQsendQuery(connection_, sql.c_str()); }
  bool is_busy() {
    PQconsumeInput(connection_);
    return PQisBusy(connection_) != 0;
  }
  std::string wait() {
    std::string last;
    while (PGresult* result = PQgetResult(connection_)) last = text(result);
    return last;
  }
  /// Whether the server sees this connection wait for a lock.
  bool waits_for_lock(Client& observer) const {
    return observer(
               "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and pid = " +
               std::to_string(PQbackendPID(connection_))) == "1";
  }

  PGconn* get() const { return connection_; }
  int pid() const { return PQbackendPID(connection_); }

 private:
  static std::string text(PGresult* result) {
    std::string out;
    if (const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE)) {
      out =
          std::string("ERROR ") + state + " " + PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    } else if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
      out = std::string("ERROR ----- ") + PQresultErrorMessage(result);
    }
    if (PQntuples(result) > 0) {
      for (int i = 0; i < PQnfields(result); ++i)
        out += (i > 0 ? "|" : "") + std::string(PQgetvalue(result, 0, i));
    }
    PQclear(result);
    return out;
  }

  PGconn* connection_;
};

/// A database of its own; with the schema unless told otherwise. Dropped when destroyed.
class Database {
 public:
  explicit Database(bool with_schema = true, PostgresServer& server = shared_server())
      : server_(server) {
    static std::atomic<int> made = 0;
    name_ = "test_" + std::to_string(++made);
    Client admin(server_.conninfo());
    if (with_schema && &server == &shared_server()) {
      // Copying a database is quicker than migrating one.
      static const bool ready = make_template(server_);
      admin("create database " + name_ + " template " + (ready ? "with_einmal" : "template0"));
      return;
    }
    admin("create database " + name_ + " template template0");
    if (with_schema) migrate(conninfo());
  }
  ~Database() {
    if (!server_.running()) return;
    Client admin(server_.conninfo());
    admin("drop database " + name_ + " with (force)");
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  std::string conninfo(const std::string& user = "postgres") const {
    return server_.conninfo(name_, user);
  }
  const std::string& name() const { return name_; }

 private:
  static void migrate(const std::string& conninfo) {
    const auto migrated = migrate_postgres(conninfo);
    if (!migrated) throw std::runtime_error(migrated.error().message);
  }
  static bool make_template(PostgresServer& server) {
    Client(server.conninfo())("create database with_einmal template template0");
    migrate(server.conninfo("with_einmal"));
    return true;
  }

  PostgresServer& server_;
  std::string name_;
};

}  // namespace einmal::test
