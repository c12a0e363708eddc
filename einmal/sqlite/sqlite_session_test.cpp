#include "einmal/sqlite/sqlite_session.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "einmal/store/run_in_transaction.hpp"
#include "einmal/testing/process.hpp"
#include "einmal/testing/virtual_clock.hpp"

/// Claim, effect and result in one transaction on the caller's own sqlite3*.
namespace einmal {
namespace {

using namespace std::chrono_literals;
using test::eventually;

struct HandlerFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

StoredResult made(const std::string& body = "made") {
  StoredResult result;
  result.status = 201;
  result.headers = "Location: /orders/1\r\n";
  result.body = body;
  return result;
}

/// A handle as an application opens it.
class Handle {
 public:
  explicit Handle(const std::string& path, bool full = true) {
    sqlite3_open(path.c_str(), &handle_);
    sqlite3_busy_timeout(handle_, 200);
    (*this)("PRAGMA journal_mode = WAL");
    (*this)(full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    (*this)("PRAGMA foreign_keys = ON");
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { sqlite3_close(handle_); }

  /// The first value of the first row; "" without one; "ERROR code".
  std::string operator()(const std::string& sql) {
    std::string out;
    const auto take = [](void* into, int count, char** values, char**) {
      auto* text = static_cast<std::string*>(into);
      if (text->empty() && count > 0 && values[0]) *text = values[0];
      return 0;
    };
    const int code = sqlite3_exec(handle_, sql.c_str(), take, &out, nullptr);
    return code == SQLITE_OK ? out : "ERROR " + std::to_string(code);
  }
  sqlite3* get() const { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

class SqliteSessions : public ::testing::Test {
 protected:
  SqliteSessions() : handle_(path()), observer_(path()) {
    handle_(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, key TEXT UNIQUE);"
        "CREATE TABLE balance (amount INTEGER); INSERT INTO balance VALUES (0);");
  }
  std::string path() const { return folder_.file("app.db"); }

  std::unique_ptr<SqliteSession> session(Handle& handle, SqliteSessionOptions options = {}) {
    auto session = sqlite_session(handle.get(), scopes_, clock_, random_, options);
    if (!session) throw std::runtime_error(session.error().message);
    return std::move(*session);
  }
  static TransactionRequest request(const std::string& key, std::uint8_t body = 1) {
    TransactionRequest request{*Scope::make("app", "alice", "create-order", key), {}, {}};
    request.fingerprint.digest[0] = body;
    request.policies.retention = 1h;
    return request;
  }
  static std::string said(const Result<Ran>& ran) {
    if (!ran)
      return "error " + std::to_string(static_cast<int>(ran.error().code)) + ": " +
             ran.error().message;
    static const char* const names[] = {"executed",    "replayed",  "mismatch", "other profile",
                                        "in progress", "uncertain", "gone",     "released"};
    return names[ran->index()];
  }
  static Handler insert_order(Handle& handle, const std::string& key) {
    return [&handle, key](const Attempt&) -> HandlerOutcome {
      handle("INSERT INTO orders (key) VALUES ('" + key + "')");
      return handled::Completed{made()};
    };
  }
  Result<Ran> run(Handle& handle, const TransactionRequest& request, const Handler& handler) {
    return run_in_transaction(*session(handle), request, handler);
  }
  /// Rows of effects and of records, as another connection sees them.
  std::string counts() {
    return observer_("SELECT count(*) FROM orders") + "/" +
           observer_("SELECT count(*) FROM einmal_record");
  }

  test::TempDir folder_;
  testing::VirtualClock clock_;
  SystemRandom random_;
  SqliteOpenScopes scopes_;
  Handle handle_, observer_;
};

TEST_F(SqliteSessions, RunAHandlerOnceAndReplayItsResultByteForByte) {
  const auto first = run(handle_, request("k"), insert_order(handle_, "k"));
  ASSERT_EQ(said(first), "executed");
  Handle another(path());
  const auto again = run(another, request("k"), insert_order(another, "k"));
  ASSERT_EQ(said(again), "replayed");
  EXPECT_EQ(std::get<ran::Replayed>(*again).result, made());
  EXPECT_EQ(std::get<ran::Replayed>(*again).operation_id,
            std::get<ran::Executed>(*first).operation_id);
  EXPECT_EQ(said(run(handle_, request("k", 2), insert_order(handle_, "k"))), "mismatch");
  TransactionRequest other_profile = request("k");
  other_profile.fingerprint.profile[0] = 9;
  EXPECT_EQ(said(run(handle_, other_profile, insert_order(handle_, "k"))), "other profile");
  EXPECT_EQ(counts(), "1/1");
}

TEST_F(SqliteSessions, KeepARefusalAndUndoWhatTheHandlerWrote) {
  const auto first = run(handle_, request("k"), [&](const Attempt&) -> HandlerOutcome {
    handle_("INSERT INTO orders (key) VALUES ('declined')");
    StoredResult refusal;
    refusal.status = 402;
    return handled::Failed{refusal};
  });
  ASSERT_EQ(said(first), "executed");
  EXPECT_EQ(counts(), "0/1");
  const auto again = run(handle_, request("k"), insert_order(handle_, "k"));
  ASSERT_EQ(said(again), "replayed");
  EXPECT_TRUE(std::get<ran::Replayed>(*again).failed);
}

TEST_F(SqliteSessions, FreeTheKeyWhenTheHandlerReleasesOrThrows) {
  EXPECT_EQ(said(run(handle_, request("k"),
                     [&](const Attempt&) -> HandlerOutcome {
                       handle_("INSERT INTO orders (key) VALUES ('k')");
                       return handled::Released{};
                     })),
            "released");
  const Handler throws = [&](const Attempt&) -> HandlerOutcome {
    handle_("INSERT INTO orders (key) VALUES ('k')");
    throw HandlerFailed("no");
  };
  EXPECT_THROW(run(handle_, request("k"), throws), HandlerFailed);
  EXPECT_EQ(counts(), "0/0");
  EXPECT_EQ(said(run(handle_, request("k", 2), insert_order(handle_, "k"))), "executed");
}

TEST_F(SqliteSessions, RebuildAnAnswerFromTheResourceIdOnTheSameHandle) {
  TransactionRequest wanted = request("k");
  const Handler insert = [&](const Attempt&) -> HandlerOutcome {
    handle_("INSERT INTO orders (id, key) VALUES (7, 'k')");
    StoredResult kept;
    kept.status = 201;
    kept.body_kept = BodyKept::by_choice;
    kept.resource_id = "7";
    kept.representation_version = 3;
    return handled::Completed{kept};
  };
  wanted.rebuild = [&](const StoredResult& kept) {
    StoredResult rebuilt = kept;
    rebuilt.body = "order of " + handle_("SELECT key FROM orders WHERE id = " + *kept.resource_id) +
                   " in version " + std::to_string(kept.representation_version);
    return rebuilt;
  };
  EXPECT_EQ(said(run(handle_, wanted, insert)), "executed");
  const auto again = run(handle_, wanted, insert);
  ASSERT_EQ(said(again), "replayed");
  EXPECT_EQ(std::get<ran::Replayed>(*again).result.status, 201);
  EXPECT_EQ(std::get<ran::Replayed>(*again).result.body, "order of k in version 3");
  wanted.rebuild = {};
  const auto bare = run(handle_, wanted, insert);
  ASSERT_EQ(said(bare), "replayed") << "without a callback: as it was kept";
  EXPECT_EQ(std::get<ran::Replayed>(*bare).result.body, "");
  EXPECT_EQ(std::get<ran::Replayed>(*bare).result.resource_id, "7");
  EXPECT_EQ(counts(), "1/1");
}

TEST_F(SqliteSessions, GiveGenerationsThatOnlyGrow) {
  std::vector<std::uint64_t> generations;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(said(run(handle_, request("k"),
                       [&](const Attempt& attempt) {
                         generations.push_back(number(attempt.generation));
                         return handled::Completed{made()};
                       })),
              "executed");
    clock_.advance(1h);
    if (round == 1) {
      EXPECT_EQ(*session(handle_)->sweep(10), 1u);
    }
  }
  EXPECT_LT(generations[0], generations[1]);
  EXPECT_LT(generations[1], generations[2]);
}

TEST_F(SqliteSessions, ExpireExactlyAndKeepATombstoneWithoutItsResult) {
  TransactionRequest refusing = request("t");
  refusing.policies.after_expiry = AfterExpiry::refuse;
  refusing.policies.tombstone = 2h;
  EXPECT_EQ(said(run(handle_, request("k"), insert_order(handle_, "k"))), "executed");
  EXPECT_EQ(said(run(handle_, refusing, insert_order(handle_, "t"))), "executed");
  clock_.advance(1h - 1us);
  EXPECT_EQ(said(run(handle_, request("k"), insert_order(handle_, "x"))), "replayed");
  clock_.advance(1us);
  EXPECT_EQ(said(run(handle_, request("k", 2), insert_order(handle_, "k2"))), "executed");
  EXPECT_EQ(said(run(handle_, refusing, insert_order(handle_, "x"))), "gone");
  EXPECT_EQ(*session(handle_)->sweep(10), 1u);
  EXPECT_EQ(observer_("SELECT count(*) FROM einmal_record WHERE body IS NULL"), "1");
  EXPECT_EQ(said(run(handle_, refusing, insert_order(handle_, "x"))), "gone");
  clock_.advance(2h);
  EXPECT_EQ(*session(handle_)->sweep(10), 2u);
  EXPECT_EQ(counts(), "3/0");
}

TEST_F(SqliteSessions, ExpireNothingWhileTheWallClockHasJumpedAhead) {
  EXPECT_EQ(said(run(handle_, request("k"), insert_order(handle_, "k"))), "executed");
  clock_.jump_wall(2h);
  EXPECT_EQ(said(run(handle_, request("k"), insert_order(handle_, "x"))), "replayed");
  EXPECT_EQ(*session(handle_)->sweep(10), 0u);
}

TEST_F(SqliteSessions, RefuseAHandleThatCannotKeepThePromise) {
  const auto refused = [&](Handle& handle, SqliteSessionOptions options = {}) {
    const auto made = sqlite_session(handle.get(), scopes_, clock_, random_, options);
    return made ? std::string("accepted") : made.error().message;
  };
  Handle weak(path(), false);
  EXPECT_NE(refused(weak), "accepted");
  EXPECT_EQ(refused(weak, {.relaxed_durability = true}), "accepted");
  Handle attached(path());
  attached("ATTACH '" + folder_.file("other.db") + "' AS other");
  EXPECT_NE(refused(attached), "accepted");
  Handle open(path());
  open("BEGIN");
  EXPECT_NE(refused(open), "accepted");
  Handle hooked(path());
  int hook = 0;
  const auto count = [](void* calls) { return ++*static_cast<int*>(calls), 0; };
  sqlite3_commit_hook(hooked.get(), count, &hook);
  EXPECT_NE(refused(hooked), "accepted");

  const auto good = session(handle_);
  handle_("PRAGMA synchronous = OFF");
  EXPECT_TRUE(said(run_in_transaction(*good, request("k"), insert_order(handle_, "k")))
                  .starts_with("error 2"));
}

TEST_F(SqliteSessions, CallTheApplicationsCommitHookAtTheCommitAndLeaveItInPlace) {
  int calls = 0;
  const auto count = [](void* counter) { return ++*static_cast<int*>(counter), 0; };
  sqlite3_commit_hook(handle_.get(), count, &calls);
  SqliteSessionOptions options;
  options.commit_hook = count;
  options.commit_hook_argument = &calls;
  const auto hooked = session(handle_, options);
  calls = 0;
  EXPECT_EQ(said(run_in_transaction(*hooked, request("k"), insert_order(handle_, "k"))),
            "executed");
  EXPECT_EQ(calls, 1);
  handle_("INSERT INTO orders (key) VALUES ('own')");
  EXPECT_EQ(calls, 2);
}

// --- C04: at once, or a bounded wait

/// A transaction on a handle of its own that stays open until told to end.
class Holder {
 public:
  Holder(const std::string& path, SqliteOpenScopes& scopes, const Clock& clock,
         TransactionRequest request, bool fail = false)
      : handle_(path), thread_([this, &scopes, &clock, request, fail] {
          auto session = sqlite_session(handle_.get(), scopes, clock, random_);
          try {
            (void)run_in_transaction(**session, request, [&](const Attempt&) -> HandlerOutcome {
              handle_("INSERT INTO orders (key) VALUES ('" + request.scope.key() + "')");
              inside_ = true;
              while (!let_go_) std::this_thread::yield();
              if (fail) throw HandlerFailed("no");
              return handled::Completed{made()};
            });
          } catch (const HandlerFailed&) {
          }
        }) {
    while (!inside_) std::this_thread::yield();
  }
  ~Holder() { end(); }
  void end() {
    let_go_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  SystemRandom random_;
  Handle handle_;
  std::atomic<bool> inside_ = false, let_go_ = false;
  std::thread thread_;
};

TEST_F(SqliteSessions, RejectADuplicateAtOnceThoughTheFirstTransactionIsOpen) {
  const auto mine = session(handle_);
  Holder holder(path(), scopes_, clock_, request("k"));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(said(run_in_transaction(*mine, request("k"), insert_order(handle_, "k"))),
            "in progress");
  EXPECT_EQ(said(run_in_transaction(*mine, request("k", 2), insert_order(handle_, "k"))),
            "in progress");
  Handle fresh(path());
  EXPECT_EQ(said(run(fresh, request("k"), insert_order(fresh, "k"))), "in progress")
      << "nor does a new session wait for the writer";
  EXPECT_LT(std::chrono::steady_clock::now() - before, 1s);
  TransactionRequest patient = request("k");
  patient.wait = 100ms;
  EXPECT_EQ(said(run_in_transaction(*mine, patient, insert_order(handle_, "k"))), "in progress");
  holder.end();
  EXPECT_EQ(said(run_in_transaction(*mine, request("k"), insert_order(handle_, "k"))), "replayed");
  EXPECT_EQ(counts(), "1/1");
}

TEST_F(SqliteSessions, GiveAWaiterTheReplayOrLetItExecute) {
  for (const bool fails : {false, true}) {
    const std::string key = fails ? "fails" : "succeeds";
    const auto mine = session(handle_);
    Holder holder(path(), scopes_, clock_, request(key), fails);
    TransactionRequest patient = request(key);
    patient.wait = 60s;
    std::optional<Result<Ran>> waited;
    std::thread waiter(
        [&] { waited = run_in_transaction(*mine, patient, insert_order(handle_, key)); });
    holder.end();
    waiter.join();
    EXPECT_EQ(said(*waited), fails ? "executed" : "replayed");
  }
  EXPECT_EQ(counts(), "2/2");
}

TEST_F(SqliteSessions, WaitForAnotherProcessesWriterAndThenSayUnavailableWithoutExecuting) {
  const auto mine = session(handle_, {.busy_limit = 100ms});
  SqliteOpenScopes of_another_process;
  Holder holder(path(), of_another_process, clock_, request("k"));
  for (const char* key : {"k", "unrelated"}) {
    EXPECT_TRUE(said(run_in_transaction(*mine, request(key), insert_order(handle_, key)))
                    .starts_with("error 0"));
  }
  holder.end();
  EXPECT_EQ(said(run_in_transaction(*mine, request("k"), insert_order(handle_, "k"))), "replayed");
  EXPECT_EQ(said(run_in_transaction(*mine, request("unrelated"), insert_order(handle_, "u"))),
            "executed");
}

// --- C12: no transaction reads first and finds at its write that the snapshot is old

TEST_F(SqliteSessions, LetReadingAndThenWritingHandlersOfManyThreadsAndProcessesMeet) {
  std::vector<std::thread> threads;
  std::atomic<int> executed = 0, replayed = 0;
  std::mutex mutex;
  std::set<std::string> others;
  SqliteOpenScopes processes[3];
  for (int t = 0; t < 9; ++t) {
    threads.emplace_back([&, t] {
      Handle handle(path());
      SystemRandom random;
      const auto mine =
          sqlite_session(handle.get(), processes[t % 3], clock_, random, {.busy_limit = 30s});
      for (int i = 0; i < 40; ++i) {
        // Every fifth key is another thread's as well.
        const std::string key =
            i % 5 == 0 ? "shared" + std::to_string(i) : std::to_string(t) + "-" + std::to_string(i);
        TransactionRequest wanted = request(key);
        wanted.wait = 30s;
        const auto ran = run_in_transaction(**mine, wanted, [&](const Attempt&) -> HandlerOutcome {
          const std::string amount = handle("SELECT amount FROM balance");
          if (handle("UPDATE balance SET amount = " + amount + " + 1") != "")
            throw HandlerFailed("busy");
          return handled::Completed{made()};
        });
        const std::string what = said(ran);
        if (what == "executed") {
          ++executed;
        } else if (what == "replayed") {
          ++replayed;
        } else {
          const std::lock_guard lock(mutex);
          others.insert(what);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(others.empty()) << *others.begin();
  EXPECT_EQ(executed, 9 * 32 + 8);
  EXPECT_EQ(replayed, 8 * 8);
  EXPECT_EQ(observer_("SELECT amount FROM balance"), std::to_string(executed));
}

// --- C13: the transaction was over, the handler went on

class EndedTransaction : public SqliteSessions {
 protected:
  /// Runs a handler that writes, does `something`, writes again, and claims success.
  std::string with(const std::function<void()>& something) {
    return said(run(handle_, request("k"), [&](const Attempt&) -> HandlerOutcome {
      handle_("INSERT INTO orders (key) VALUES ('before')");
      something();
      handle_("INSERT INTO orders (key) VALUES ('after')");
      return handled::Completed{made()};
    }));
  }
  void expect_nothing_remains_and_all_is_well() {
    EXPECT_EQ(counts(), "0/0");
    EXPECT_EQ(said(run(handle_, request("k"), insert_order(handle_, "k"))), "executed");
    EXPECT_EQ(counts(), "1/1");
    EXPECT_EQ(said(run(handle_, request("k"), insert_order(handle_, "k"))), "replayed");
  }
};

TEST_F(EndedTransaction, ByAFullDisk) {
  session(handle_);
  const std::string pages = handle_("PRAGMA page_count");
  const std::string ran = with([&] {
    handle_("PRAGMA max_page_count = " + pages);
    EXPECT_EQ(handle_("INSERT INTO orders (key) VALUES (hex(zeroblob(5000000)))"), "ERROR 13");
    EXPECT_NE(sqlite3_get_autocommit(handle_.get()), 0) << "SQLite did not roll back by itself";
    handle_("PRAGMA max_page_count = 1000000");
  });
  EXPECT_TRUE(ran.starts_with("error 0")) << ran;
  expect_nothing_remains_and_all_is_well();
}

TEST_F(EndedTransaction, ByAnInterrupt) {
  const std::string ran = with([&] {
    sqlite3_progress_handler(
        handle_.get(), 100, [](void*) { return 1; }, nullptr);
    EXPECT_EQ(
        handle_("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
                "INSERT INTO orders (key) SELECT 'n' || i FROM n"),
        "ERROR 9");
    sqlite3_progress_handler(handle_.get(), 0, nullptr, nullptr);
  });
  EXPECT_TRUE(ran.starts_with("error 0")) << ran;
  expect_nothing_remains_and_all_is_well();
}

TEST_F(EndedTransaction, ByTheHandlersCommit) {
  for (const char* verb : {"COMMIT", "  end", "COMMIT; BEGIN", "COMMIT; BEGIN; SAVEPOINT mine"}) {
    const std::string ran = with([&] { handle_(verb); });
    EXPECT_TRUE(ran.starts_with("error 2")) << verb << ran;
    EXPECT_EQ(counts(), "0/0") << verb;
  }
  expect_nothing_remains_and_all_is_well();
}

TEST_F(EndedTransaction, ByTheHandlersRollback) {
  for (const char* verb : {"ROLLBACK", "ROLLBACK; BEGIN", "ROLLBACK; BEGIN; SAVEPOINT mine",
                           "RELEASE einmal_handler"}) {
    const std::string ran = with([&] { handle_(verb); });
    EXPECT_TRUE(ran.starts_with("error")) << verb << ran;
    EXPECT_EQ(counts(), "0/0") << verb;
  }
  expect_nothing_remains_and_all_is_well();
}

TEST_F(EndedTransaction, ByADeferredConstraintAtTheCommit) {
  handle_(
      "CREATE TABLE lines (order_id INTEGER REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)");
  const std::string ran = with([&] { EXPECT_EQ(handle_("INSERT INTO lines VALUES (4711)"), ""); });
  EXPECT_TRUE(ran.starts_with("error 2")) << ran;
  expect_nothing_remains_and_all_is_well();
}

TEST_F(EndedTransaction, ByAStatementThatIsStillWriting) {
  sqlite3_stmt* writing = nullptr;
  const std::string ran = with([&] {
    sqlite3_prepare_v2(handle_.get(), "INSERT INTO orders (key) VALUES ('w'), ('v') RETURNING key",
                       -1, &writing, nullptr);
    EXPECT_EQ(sqlite3_step(writing), SQLITE_ROW);
  });
  sqlite3_finalize(writing);
  EXPECT_TRUE(ran == "executed" || ran.starts_with("error 2")) << ran;
  EXPECT_EQ(counts(), ran == "executed" ? "4/1" : "0/0");
}

TEST_F(EndedTransaction, NotByTheHandlersOwnSavepoints) {
  EXPECT_EQ(with([&] {
              handle_(
                  "SAVEPOINT mine; INSERT INTO orders (key) VALUES ('undone');"
                  "ROLLBACK TO mine; RELEASE mine; SAVEPOINT left_open");
            }),
            "executed");
  EXPECT_EQ(counts(), "2/1");
  EXPECT_EQ(said(run(handle_, request("next"), insert_order(handle_, "next"))), "executed");
  EXPECT_EQ(counts(), "3/2");
}

}  // namespace
}  // namespace einmal
