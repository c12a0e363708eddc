#include <libpq-fe.h>

#include <utility>

#include "einmal/base/random.hpp"
#include "einmal/postgres/migrate.hpp"
#include "einmal/postgres/postgres_session.hpp"
#include "shop/connection.hpp"

namespace einmal::shop {

namespace {

constexpr std::size_t connections = 16;

/// One at a time, whoever else starts a shop on this database.
constexpr const char* schema[] = {
    "SELECT pg_advisory_xact_lock(7446744)",
    "CREATE SCHEMA IF NOT EXISTS shop",
    "CREATE TABLE IF NOT EXISTS shop.entries("
    " kind text NOT NULL, id text NOT NULL, item text NOT NULL, amount bigint NOT NULL,"
    " currency text NOT NULL, key text NOT NULL, PRIMARY KEY(kind, id))",
    "CREATE INDEX IF NOT EXISTS entries_by_key ON shop.entries(key, kind) WHERE key <> ''",
    "CREATE TABLE IF NOT EXISTS shop.effects("
    " number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL,"
    " id text NOT NULL, key text NOT NULL, at timestamptz NOT NULL DEFAULT now())",
    "CREATE TABLE IF NOT EXISTS shop.fences(name text PRIMARY KEY, token bigint NOT NULL)",
};

struct Close {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultHandle = std::unique_ptr<PGresult, Clear>;

class PostgresConnection final : public Connection {
 public:
  /// The search path is part of the connection's options, so that it holds after a reset as well.
  explicit PostgresConnection(const std::string& conninfo) {
    const char* names[] = {"dbname", "options", nullptr};
    const char* values[] = {conninfo.c_str(), "-c search_path=shop", nullptr};
    connection_.reset(PQconnectdbParams(names, values, 1));
    PQsetNoticeProcessor(
        connection_.get(), [](void*, const char*) {}, nullptr);
  }

  Result<void> open() {
    if (PQstatus(connection_.get()) == CONNECTION_OK) return {};
    return failure(ErrorCode::unavailable, std::string("ledger: no connection to PostgreSQL: ") +
                                               PQerrorMessage(connection_.get()));
  }

  bool ready() override {
    if (PQstatus(connection_.get()) != CONNECTION_OK) PQreset(connection_.get());
    return PQstatus(connection_.get()) == CONNECTION_OK;
  }
  std::vector<Row> run(const char* sql, const std::vector<std::string>& parameters) override;
  void begin() override { run("BEGIN", {}); }
  void commit() override { run("COMMIT", {}); }
  void roll_back() override { ResultHandle(PQexec(connection_.get(), "ROLLBACK")); }
  Result<std::reference_wrapper<Session>> session() override {
    if (!session_) session_ = postgres_session(connection_.get(), random_);
    return std::ref(*session_);
  }
  Result<void> sweep(std::size_t limit) override {
    try {
      run("SELECT changed FROM einmal.sweep($1)", {std::to_string(limit)});
      return {};
    } catch (const BooksFailed& failed) {
      return failure(ErrorCode::unavailable, failed.what());
    }
  }

 private:
  std::unique_ptr<PGconn, Close> connection_;
  SystemRandom random_;
  std::unique_ptr<Session> session_;  // After the connection, which must outlive it.
};

std::vector<Row> PostgresConnection::run(const char* sql,
                                         const std::vector<std::string>& parameters) {
  std::vector<const char*> values;
  for (const auto& parameter : parameters) values.push_back(parameter.c_str());
  const ResultHandle result(PQexecParams(connection_.get(), sql, static_cast<int>(values.size()),
                                         nullptr, values.data(), nullptr, nullptr, 0));
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    throw BooksFailed(PQerrorMessage(connection_.get()));
  std::vector<Row> rows;
  for (int i = 0; i < PQntuples(result.get()); ++i) {
    Row& row = rows.emplace_back();
    for (int column = 0; column < PQnfields(result.get()); ++column)
      row.emplace_back(PQgetvalue(result.get(), i, column));
  }
  return rows;
}

Result<void> make_schema(const std::string& conninfo) {
  PostgresConnection connection(conninfo);
  if (auto opened = connection.open(); !opened) return opened;
  try {
    connection.begin();
    for (const char* sql : schema) connection.run(sql, {});
    connection.commit();
    return {};
  } catch (const BooksFailed& failed) {
    return failure(ErrorCode::unavailable, std::string("ledger: its schema: ") + failed.what());
  }
}

}  // namespace

Result<Place> postgres_place(const std::string& conninfo, Keeping keeping) {
  if (auto made = make_schema(conninfo); !made) return pass_on(made);
  if (keeping == Keeping::keys) {
    if (const auto migrated = migrate_postgres(conninfo); !migrated) return pass_on(migrated);
  }
  Place place;
  place.connections = connections;
  place.connect = [conninfo]() -> Result<std::unique_ptr<Connection>> {
    auto connection = std::make_unique<PostgresConnection>(conninfo);
    if (auto opened = connection->open(); !opened) return pass_on(opened);
    return std::unique_ptr<Connection>(std::move(connection));
  };
  return place;
}

}  // namespace einmal::shop
