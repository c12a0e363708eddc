// What it costs to insert an order exactly once: run_in_transaction with an insert as its handler
// (claim, insert and result commit together), beside the bare insert, on one connection.
//
//   transaction_rate postgres CONNINFO ROUNDS      a migrated database
//   transaction_rate sqlite FILE ROUNDS            a new file, in WAL with synchronous = FULL
//
// Rounds of both alternate; prints the median microseconds of each and the median of the ratios.

#include <libpq-fe.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "einmal/base/random.hpp"
#include "einmal/postgres/postgres_session.hpp"
#include "einmal/sqlite/sqlite_session.hpp"
#include "einmal/store/run_in_transaction.hpp"

namespace {

using Pace = std::chrono::steady_clock;
constexpr int orders_in_a_round = 250;
const std::string answer_headers = "Content-Type: application/json\r\nLocation: /orders/4711\r\n";
const std::string answer_body =
    R"({"id":4711,"item":"A-1","amount":1250,"currency":"eur","note":"as it was stored"})";

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "transaction_rate: %s\n", what);
  std::exit(1);
}

/// A database with a table of orders.
class Orders {
 public:
  virtual ~Orders() = default;
  /// One order, in whatever transaction is open, else in one of its own.
  virtual void insert() = 0;
  virtual einmal::Session& session() = 0;
};

class OnPostgres final : public Orders {
 public:
  OnPostgres(const char* conninfo, einmal::Random& random) : connection_(PQconnectdb(conninfo)) {
    run(PQexec(connection_.get(), "set client_min_messages = warning"), PGRES_COMMAND_OK);
    run(PQexec(connection_.get(),
               "create table if not exists bench_order (id bigint generated always as identity "
               "primary key, item text not null, amount bigint not null, at timestamptz not null "
               "default now())"),
        PGRES_COMMAND_OK);
    run(PQprepare(connection_.get(), "insert_order",
                  "insert into bench_order (item, amount) values ($1, $2) returning id", 2,
                  nullptr),
        PGRES_COMMAND_OK);
    session_ = einmal::postgres_session(connection_.get(), random);
  }
  void insert() override {
    const char* values[] = {"A-1", "1250"};
    run(PQexecPrepared(connection_.get(), "insert_order", 2, values, nullptr, nullptr, 0),
        PGRES_TUPLES_OK);
  }
  einmal::Session& session() override { return *session_; }

 private:
  struct Close {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  void run(PGresult* result, ExecStatusType expected) {
    if (PQresultStatus(result) != expected) give_up(PQerrorMessage(connection_.get()));
    PQclear(result);
  }

  std::unique_ptr<PGconn, Close> connection_;
  std::unique_ptr<einmal::Session> session_;
};

class OnSqlite final : public Orders {
 public:
  OnSqlite(const char* file, einmal::Clock& clock, einmal::Random& random) {
    check(sqlite3_open(file, &handle_));
    check(sqlite3_exec(handle_,
                       "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE "
                       "bench_order (id INTEGER PRIMARY KEY, item TEXT NOT NULL, amount INTEGER "
                       "NOT NULL, at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)",
                       nullptr, nullptr, nullptr));
    check(sqlite3_prepare_v3(handle_, "INSERT INTO bench_order (item, amount) VALUES (?1, ?2)", -1,
                             SQLITE_PREPARE_PERSISTENT, &insert_, nullptr));
    auto session = einmal::sqlite_session(handle_, scopes_, clock, random);
    if (!session) give_up(session.error().message.c_str());
    session_ = std::move(*session);
  }
  ~OnSqlite() override {
    session_.reset();
    sqlite3_finalize(insert_);
    sqlite3_close(handle_);
  }
  void insert() override {
    sqlite3_bind_text(insert_, 1, "A-1", 3, SQLITE_STATIC);
    sqlite3_bind_int64(insert_, 2, 1250);
    if (sqlite3_step(insert_) != SQLITE_DONE) give_up(sqlite3_errmsg(handle_));
    sqlite3_reset(insert_);
  }
  einmal::Session& session() override { return *session_; }

 private:
  void check(int code) {
    if (code != SQLITE_OK) give_up(sqlite3_errmsg(handle_));
  }

  sqlite3* handle_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  einmal::SqliteOpenScopes scopes_;
  std::unique_ptr<einmal::SqliteSession> session_;
};

void insert_once(Orders& orders, const std::string& key) {
  einmal::TransactionRequest request{
      *einmal::Scope::make("app", "merchant-7", "create-order", key), {}, {}, {}, true, 20, {}};
  request.fingerprint.digest[0] = 1;
  request.policies.lease = std::nullopt;
  const auto ran = einmal::run_in_transaction(
      orders.session(), request, [&](const einmal::Attempt&) -> einmal::HandlerOutcome {
        orders.insert();
        einmal::StoredResult result;
        result.status = 201;
        result.headers = answer_headers;
        result.body = answer_body;
        return einmal::handled::Completed{std::move(result)};
      });
  if (!ran) give_up(ran.error().message.c_str());
  if (!std::holds_alternative<einmal::ran::Executed>(*ran)) give_up("a new key was not executed");
}

double microseconds_each(const std::function<void()>& once) {
  const auto begun = Pace::now();
  for (int i = 0; i < orders_in_a_round; ++i) once();
  return std::chrono::duration<double, std::micro>(Pace::now() - begun).count() / orders_in_a_round;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) give_up("usage: transaction_rate postgres|sqlite CONNINFO|FILE ROUNDS");
  einmal::SystemClock clock;
  einmal::SystemRandom random;
  std::unique_ptr<Orders> orders;
  if (std::strcmp(arguments[1], "postgres") == 0) {
    orders = std::make_unique<OnPostgres>(arguments[2], random);
  } else {
    orders = std::make_unique<OnSqlite>(arguments[2], clock, random);
  }
  const std::string run = std::to_string(random.below(std::uint64_t{1} << 60));
  std::uint64_t next = 0;
  const auto bare = [&] { orders->insert(); };
  const auto once = [&] { insert_once(*orders, run + "-" + std::to_string(next++)); };
  microseconds_each(bare);
  microseconds_each(once);
  std::vector<double> bare_times, once_times, ratios;
  for (int round = 0; round < std::atoi(arguments[3]); ++round) {
    bare_times.push_back(microseconds_each(bare));
    once_times.push_back(microseconds_each(once));
    ratios.push_back(once_times.back() / bare_times.back());
  }
  std::printf("%.0f %.0f %.2f\n", median(bare_times), median(once_times), median(ratios));
  return 0;
}
