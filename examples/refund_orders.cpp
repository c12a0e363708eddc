#include "refund_orders.hpp"

#include <libpq-fe.h>
#include <sqlite3.h>

#include <stdexcept>

#include "einmal/postgres/postgres_session.hpp"
#include "einmal/sqlite/sqlite_session.hpp"

namespace einmal::refund {

namespace {

class OrdersInSqlite final : public Orders {
 public:
  OrdersInSqlite(const std::string& path, const Clock& clock, Random& random) {
    sqlite3* opened = nullptr;
    sqlite3_open(path.c_str(), &opened);
    handle_.reset(opened);
    sqlite3_busy_timeout(opened, 2000);
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = FULL");
    auto session = sqlite_session(opened, scopes_, clock, random);
    if (!session) throw std::runtime_error(session.error().message);
    session_ = std::move(*session);
  }
  Session& session() override { return *session_; }
  bool begin_refund(const std::string& order) override {
    return change("UPDATE orders SET state = 'refunding' WHERE id = ?1 AND state = 'paid'", order,
                  {}) == 1;
  }
  void book_refund(const std::string& order, const std::string& payment) override {
    const char* sql =
        "UPDATE orders SET state = 'refunded', refunds = refunds + 1, payment = ?2 WHERE id = ?1";
    if (change(sql, order, payment) != 1) throw std::runtime_error("no such order");
  }

 private:
  void execute(const char* sql) {
    if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
      throw std::runtime_error(sqlite3_errmsg(handle_.get()));
  }
  int change(const char* sql, const std::string& order, const std::string& payment) {
    sqlite3_stmt* made = nullptr;
    sqlite3_prepare_v2(handle_.get(), sql, -1, &made, nullptr);
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(made, sqlite3_finalize);
    sqlite3_bind_text(made, 1, order.data(), static_cast<int>(order.size()), SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(made) > 1)
      sqlite3_bind_text(made, 2, payment.data(), static_cast<int>(payment.size()), SQLITE_STATIC);
    if (sqlite3_step(made) != SQLITE_DONE) throw std::runtime_error(sqlite3_errmsg(handle_.get()));
    return sqlite3_changes(handle_.get());
  }

  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_{nullptr, sqlite3_close_v2};
  SqliteOpenScopes scopes_;
  std::unique_ptr<SqliteSession> session_;
};

class OrdersInPostgres final : public Orders {
 public:
  OrdersInPostgres(const std::string& conninfo, Random& random)
      : connection_(PQconnectdb(conninfo.c_str()), PQfinish) {
    if (PQstatus(connection_.get()) != CONNECTION_OK)
      throw std::runtime_error(PQerrorMessage(connection_.get()));
    session_ = postgres_session(connection_.get(), random);
  }
  Session& session() override { return *session_; }
  bool begin_refund(const std::string& order) override {
    return change("update orders set state = 'refunding' where id = $1 and state = 'paid'",
                  {order.c_str()}) == "1";
  }
  void book_refund(const std::string& order, const std::string& payment) override {
    const char* sql =
        "update orders set state = 'refunded', refunds = refunds + 1, payment = $2 where id = $1";
    if (change(sql, {order.c_str(), payment.c_str()}) != "1")
      throw std::runtime_error("no such order");
  }

 private:
  std::string change(const char* sql, const std::vector<const char*>& values) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexecParams(connection_.get(), sql, static_cast<int>(values.size()), nullptr,
                     values.data(), nullptr, nullptr, 0),
        PQclear);
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK)
      throw std::runtime_error(PQerrorMessage(connection_.get()));
    return PQcmdTuples(result.get());
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::unique_ptr<Session> session_;
};

}  // namespace

Result<std::unique_ptr<Orders>> open_orders(const std::string& database, const Clock& clock,
                                            Random& random) {
  try {
    if (database.rfind("sqlite:", 0) == 0)
      return std::make_unique<OrdersInSqlite>(database.substr(7) + "/orders.db", clock, random);
    return std::make_unique<OrdersInPostgres>(database, random);
  } catch (const std::exception& error) {
    return failure(ErrorCode::unavailable, std::string("orders: ") + error.what());
  }
}

}  // namespace einmal::refund
