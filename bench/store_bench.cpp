// The embedded store against a hand-written loop of prepared statements with the same schema, the
// same batch size and the same durability. Every figure is claim + complete pairs a second.

#include <benchmark/benchmark.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "callers.hpp"
#include "einmal/sqlite/scope_digest.hpp"
#include "einmal/sqlite/sqlite_store.hpp"

namespace einmal {
namespace {

namespace fs = std::filesystem;
using bench::Callers, bench::response_body, bench::response_headers, bench::scope_of;

/// A directory of its own for each run: in $EINMAL_BENCH_DIR or the working directory, since a
/// temporary directory may live in memory.
class Directory {
 public:
  Directory() {
    const char* base = std::getenv("EINMAL_BENCH_DIR");
    std::string name = (fs::path(base ? base : ".") / "store-bench-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Directory() { fs::remove_all(path_); }
  std::string file() const { return (path_ / "a.db").string(); }

 private:
  fs::path path_;
};

std::unique_ptr<Store> open(const std::string& path) {
  static SystemClock clock;
  static SystemRandom random;
  auto store = open_sqlite_store(path, {}, clock, random);
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().message.c_str());
    std::abort();
  }
  return std::move(*store);
}

constexpr std::size_t pairs_in_an_iteration = 4096;

void EmbeddedStore(benchmark::State& state) {
  Directory directory;
  auto store = open(directory.file());
  Callers callers(*store, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) callers.run(pairs_in_an_iteration);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(pairs_in_an_iteration));
}
BENCHMARK(EmbeddedStore)
    ->Arg(1)
    ->Arg(32)
    ->Arg(128)
    ->Arg(256)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

/// What somebody would write by hand who needs nothing but this: look the key up, insert it; update
/// the row under the fence, insert the result; the counter once a transaction.
class HandWritten {
 public:
  explicit HandWritten(const std::string& path) : digests_("0123456789abcdef") {
    check(
        sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr));
    exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -8192");
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
    find_ = prepare(
        "SELECT id, namespace, caller, operation, key, state FROM record WHERE scope_digest = ?1");
    insert_ = prepare(
        "INSERT INTO record (id, scope_digest, scope_nth, namespace, caller, operation, key, "
        "operation_id, findable_by_id, state, generation, owner, attempts, profile, fingerprint, "
        "lease, on_lease_expiry, retention, after_expiry, tombstone, lease_end, lease_boot, cause, "
        "settled_by, created, claimed, result_bytes) VALUES (?7, ?1, 0, ?2, ?3, ?4, ?5, ?6, 1, 1, "
        "?7, "
        "?8, 1, 1, ?9, "
        "30000000, 1, 86400000000, 1, 2592000000000, ?10, ?11, 0, 0, ?12, ?12, 0)");
    result_ = prepare(
        "INSERT INTO result (status, headers, body, body_kept, effect, representation_version) "
        "VALUES (201, ?1, ?2, 1, 1, 1)");
    update_ = prepare(
        "UPDATE record SET state = 2, lease_end = NULL, lease_boot = NULL, settled_by = 1, settled "
        "= "
        "?1, expires = ?2, sweep_at = ?2, result = ?3, result_bytes = 280 WHERE scope_digest = ?4 "
        "AND key = ?5 AND caller "
        "= ?6 AND operation = ?7 AND namespace = ?8 AND generation = ?9 AND owner = ?10");
    operation_ = prepare("INSERT INTO operation (id, record) VALUES (?1, ?2)");
    counter_ = prepare("UPDATE counter SET generation = ?1");
  }
  ~HandWritten() {
    for (auto* s : {begin_, commit_, find_, insert_, result_, update_, operation_, counter_})
      sqlite3_finalize(s);
    sqlite3_close(db_);
  }

  void round(std::size_t batch) {
    scopes_.clear();
    const std::int64_t first = generation_;
    run(begin_);
    for (std::size_t i = 0; i < batch; ++i) claim(scopes_.emplace_back(scope_of(next_++)));
    sqlite3_bind_int64(counter_, 1, generation_);
    run(counter_);
    run(commit_);
    run(begin_);
    for (std::size_t i = 0; i < batch; ++i) {
      settle(scopes_[i], first + static_cast<std::int64_t>(i) + 1);
    }
    run(commit_);
    // Callers that wait for their turn do not write a WAL without end.
    if (++rounds_ * batch % 16384 < batch) exec("PRAGMA wal_checkpoint(RESTART)");
  }

 private:
  static void check(int code) {
    if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
    std::fprintf(stderr, "SQLite %d\n", code);
    std::abort();
  }
  void exec(const char* sql) { check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }
  sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr));
    return statement;
  }
  static void run(sqlite3_stmt* statement) {
    check(sqlite3_step(statement));
    sqlite3_reset(statement);
  }
  static void text(sqlite3_stmt* s, int at, const std::string& value) {
    sqlite3_bind_text(s, at, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
  }
  static void blob(sqlite3_stmt* s, int at, const void* data, int size) {
    sqlite3_bind_blob(s, at, data, size, SQLITE_STATIC);
  }
  static std::int64_t wall() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }

  void claim(const Scope& scope) {
    sqlite3_bind_int64(find_, 1, digests_.of(scope));
    if (sqlite3_step(find_) == SQLITE_ROW) std::abort();
    sqlite3_reset(find_);
    unsigned char owner[16], operation_id[16];
    random_.fill(owner, 16);
    random_.fill(operation_id, 16);
    owners_[static_cast<std::size_t>(++generation_) % 4096] = {owner, owner + 16};
    unsigned char digest[32] = {1};
    unsigned char boot[16] = {2};
    sqlite3_bind_int64(insert_, 1, digests_.of(scope));
    text(insert_, 2, scope.name_space());
    text(insert_, 3, scope.caller());
    text(insert_, 4, scope.operation());
    text(insert_, 5, scope.key());
    blob(insert_, 6, operation_id, 16);
    sqlite3_bind_int64(insert_, 7, generation_);
    blob(insert_, 8, owner, 16);
    blob(insert_, 9, digest, 32);
    sqlite3_bind_int64(insert_, 10, wall());
    blob(insert_, 11, boot, 16);
    sqlite3_bind_int64(insert_, 12, wall());
    run(insert_);
    std::int64_t entry = 0;
    std::memcpy(&entry, operation_id + 8, sizeof entry);
    sqlite3_bind_int64(operation_, 1, entry);
    sqlite3_bind_int64(operation_, 2, generation_);
    run(operation_);
  }

  void settle(const Scope& scope, std::int64_t generation) {
    blob(result_, 1, response_headers.data(), static_cast<int>(response_headers.size()));
    blob(result_, 2, response_body.data(), static_cast<int>(response_body.size()));
    run(result_);
    const auto now = wall();
    sqlite3_bind_int64(update_, 1, now);
    sqlite3_bind_int64(update_, 2, now + 86'400'000'000);
    sqlite3_bind_int64(update_, 3, sqlite3_last_insert_rowid(db_));
    sqlite3_bind_int64(update_, 4, digests_.of(scope));
    text(update_, 5, scope.key());
    text(update_, 6, scope.caller());
    text(update_, 7, scope.operation());
    text(update_, 8, scope.name_space());
    sqlite3_bind_int64(update_, 9, generation);
    const auto& owner = owners_[static_cast<std::size_t>(generation) % 4096];
    blob(update_, 10, owner.data(), 16);
    run(update_);
    if (sqlite3_changes(db_) != 1) std::abort();
  }

  sqlite::ScopeDigests digests_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt *begin_, *commit_, *find_, *insert_, *result_, *update_, *operation_, *counter_;
  std::vector<Scope> scopes_;
  std::vector<std::string> owners_ = std::vector<std::string>(4096);
  SeededRandom random_{1};
  std::uint64_t next_ = 0;
  std::size_t rounds_ = 0;
  std::int64_t generation_ = 0;
};

void HandWrittenLoop(benchmark::State& state) {
  Directory directory;
  open(directory.file()).reset();  // makes the schema
  HandWritten loop(directory.file());
  const auto batch = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    for (std::size_t done = 0; done < pairs_in_an_iteration; done += batch) loop.round(batch);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(pairs_in_an_iteration));
}
BENCHMARK(HandWrittenLoop)
    ->Arg(1)
    ->Arg(32)
    ->Arg(128)
    ->Arg(256)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace einmal
