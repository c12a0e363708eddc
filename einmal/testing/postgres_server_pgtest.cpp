#include "einmal/testing/postgres_server.hpp"

#include <filesystem>
#include <memory>
#include <optional>

#include <gtest/gtest.h>
#include <libpq-fe.h>

namespace einmal::test {
namespace {

struct Close {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using Connection = std::unique_ptr<PGconn, Close>;

std::optional<std::string> value_of(PGconn* connection, const char* query) {
  const std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection, query), PQclear);
  if (PQresultStatus(result.get()) != PGRES_TUPLES_OK || PQntuples(result.get()) != 1)
    return std::nullopt;
  return PQgetvalue(result.get(), 0, 0);
}

TEST(PostgresServer, KeepsACommitAcrossAKillOfAllItsProcesses) {
  PostgresServer server;
  const Connection before(PQconnectdb(server.conninfo().c_str()));
  ASSERT_EQ(PQstatus(before.get()), CONNECTION_OK) << PQerrorMessage(before.get());
  ASSERT_EQ(value_of(before.get(), "create table t as select 7 as n; select n from t"), "7");

  server.kill();
  EXPECT_FALSE(server.running());
  EXPECT_EQ(value_of(before.get(), "select 1"), std::nullopt);

  server.start();
  const Connection after(PQconnectdb(server.conninfo().c_str()));
  EXPECT_EQ(value_of(after.get(), "select n from t"), "7");
}

TEST(PostgresServer, ListensOnItsSocketOnlyAndTakesSettings) {
  PostgresOptions options;
  options.settings = {{"default_transaction_isolation", "repeatable read"}};
  PostgresServer server(options);
  Connection connection(PQconnectdb(server.conninfo().c_str()));
  EXPECT_EQ(value_of(connection.get(), "show listen_addresses"), "");
  EXPECT_EQ(value_of(connection.get(), "show default_transaction_isolation"), "repeatable read");
  EXPECT_EQ(value_of(connection.get(), "show fsync"), "off");
  connection.reset();
  server.restart_with({{"fsync", "on"}});
  connection.reset(PQconnectdb(server.conninfo().c_str()));
  EXPECT_EQ(value_of(connection.get(), "show fsync"), "on");
}

TEST(PostgresServer, LeavesNothingBehind) {
  std::string folder;
  {
    PostgresServer server;
    folder = server.socket_folder();
    EXPECT_TRUE(std::filesystem::exists(server.data_folder()));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace einmal::test
