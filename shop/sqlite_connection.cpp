#include <sqlite3.h>

#include <chrono>
#include <map>
#include <string_view>
#include <thread>
#include <utility>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/sqlite/sqlite_session.hpp"
#include "shop/connection.hpp"

namespace einmal::shop {

namespace {

constexpr std::chrono::seconds busy_limit{10};
/// Writers take turns; what more handles are good for is to see that a key is taken.
constexpr std::size_t handles_for_keys = 16;

constexpr const char* schema = R"(
  CREATE TABLE IF NOT EXISTS entries(
    kind TEXT NOT NULL, id TEXT NOT NULL, item TEXT NOT NULL, amount INTEGER NOT NULL,
    currency TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY(kind, id)) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS entries_by_key ON entries(key, kind) WHERE key <> '';
  CREATE TABLE IF NOT EXISTS effects(
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, key TEXT NOT NULL,
    at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
  CREATE TABLE IF NOT EXISTS fences(
    name TEXT NOT NULL PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID;
)";

/// What all connections to one file share.
struct File {
  std::string path;
  Keeping keeping = Keeping::effects;
  SqliteOpenScopes scopes;
  SystemClock clock;
  SystemRandom random;
};

/// Waits in short steps: SQLite's own steps grow to 100 ms, and the shop's writers meet often.
int wait_a_little(void*, int calls) {
  constexpr std::chrono::milliseconds step{1};
  if (calls * step >= busy_limit) return 0;
  std::this_thread::sleep_for(step);
  return 1;
}

class SqliteConnection final : public Connection {
 public:
  explicit SqliteConnection(std::shared_ptr<File> file) : file_(std::move(file)) {}
  ~SqliteConnection() override {
    session_.reset();
    for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close(handle_);
  }
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  Result<void> open();

  bool ready() override { return true; }
  std::vector<Row> run(const char* sql, const std::vector<std::string>& parameters) override;
  void begin() override { run("BEGIN IMMEDIATE", {}); }
  void commit() override { run("COMMIT", {}); }
  void roll_back() override {
    if (!sqlite3_get_autocommit(handle_))
      sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Result<std::reference_wrapper<Session>> session() override;
  Result<void> sweep(std::size_t limit) override;

 private:
  sqlite3_stmt* prepared(const char* sql);
  [[noreturn]] void fail() const {
    throw BooksFailed(file_->path + ": " + sqlite3_errmsg(handle_));
  }

  std::shared_ptr<File> file_;
  sqlite3* handle_ = nullptr;
  std::map<std::string_view, sqlite3_stmt*> statements_;
  std::unique_ptr<SqliteSession> session_;
};

Result<void> SqliteConnection::open() {
  const auto run_all = [this](const char* sql) {
    return sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  };
  const auto flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  bool opened = sqlite3_open_v2(file_->path.c_str(), &handle_, flags, nullptr) == SQLITE_OK;
  if (opened) sqlite3_busy_handler(handle_, wait_a_little, nullptr);
  // NORMAL: an effect outlives the process, not a power cut. There the shop stands for somebody
  // else's API; what is being shown is the gateway's durability.
  const char* flush =
      file_->keeping == Keeping::keys ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL";
  for (const char* sql : {"PRAGMA journal_mode=WAL", flush, schema})
    opened = opened && run_all(sql);
  if (opened) return {};
  return failure(ErrorCode::unavailable, "ledger " + file_->path + ": " + sqlite3_errmsg(handle_));
}

sqlite3_stmt* SqliteConnection::prepared(const char* sql) {
  auto& statement = statements_[sql];
  if (!statement && sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement,
                                       nullptr) != SQLITE_OK)
    fail();
  return statement;
}

std::vector<Row> SqliteConnection::run(const char* sql,
                                       const std::vector<std::string>& parameters) {
  auto* statement = prepared(sql);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto name = "$" + std::to_string(i + 1);
    const int index = sqlite3_bind_parameter_index(statement, name.c_str());
    sqlite3_bind_text(statement, index, parameters[i].data(),
                      static_cast<int>(parameters[i].size()), SQLITE_TRANSIENT);
  }
  std::vector<Row> rows;
  int code = 0;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    Row& row = rows.emplace_back();
    for (int column = 0; column < sqlite3_column_count(statement); ++column) {
      const auto* text = sqlite3_column_text(statement, column);
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
      row.emplace_back(reinterpret_cast<const char*>(text), text ? size : 0);
    }
  }
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  if (code != SQLITE_DONE) fail();
  return rows;
}

Result<std::reference_wrapper<Session>> SqliteConnection::session() {
  if (!session_) {
    SqliteSessionOptions options;
    options.busy_limit = busy_limit;
    auto made = sqlite_session(handle_, file_->scopes, file_->clock, file_->random, options);
    if (!made) return pass_on(made);
    session_ = std::move(*made);
  }
  return std::ref<Session>(*session_);
}

Result<void> SqliteConnection::sweep(std::size_t limit) {
  const auto swept = session_->sweep(limit);
  if (!swept) return pass_on(swept);
  return {};
}

}  // namespace

Result<Place> sqlite_place(const std::string& path, Keeping keeping) {
  const auto file = std::make_shared<File>();
  file->path = path;
  file->keeping = keeping;
  Place place;
  place.connections = keeping == Keeping::keys ? handles_for_keys : 1;
  place.connect = [file]() -> Result<std::unique_ptr<Connection>> {
    auto connection = std::make_unique<SqliteConnection>(file);
    if (auto opened = connection->open(); !opened) return pass_on(opened);
    return std::unique_ptr<Connection>(std::move(connection));
  };
  // Once now: the tables are there before anybody writes, and what is wrong is said at the start.
  const auto first = place.connect();
  if (!first) return pass_on(first);
  if (keeping == Keeping::keys) {
    if (const auto session = (*first)->session(); !session) return pass_on(session);
  }
  return place;
}

}  // namespace einmal::shop
