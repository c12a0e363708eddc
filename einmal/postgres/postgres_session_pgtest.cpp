#include "einmal/postgres/postgres_session.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "einmal/postgres/pg_fixture.hpp"
#include "einmal/store/run_in_transaction.hpp"
#include "einmal/testing/tcp_gate.hpp"

/// Claim, effect and result in one transaction on the caller's own PGconn.
namespace einmal {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::Database;
using test::eventually;
using Pace = std::chrono::steady_clock;

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

class PostgresSessions : public ::testing::TestWithParam<const char*> {
 protected:
  PostgresSessions() : observer_(database_.conninfo()) {
    observer_(
        "create table public.orders (id bigint generated always as identity, key text unique);"
        "create table public.balance (amount int); insert into public.balance values (0)");
    observer_("alter database " + database_.name() + " set default_transaction_isolation = '" +
              std::string(GetParam()) + "'");
  }

  static TransactionRequest request(const std::string& key, std::uint8_t body = 1) {
    TransactionRequest request{*Scope::make("app", "alice", "create-order", key), {}, {}};
    request.fingerprint.digest[0] = body;
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
  static Handler insert_order(Client& client, const std::string& key) {
    return [&client, key](const Attempt&) -> HandlerOutcome {
      client("insert into public.orders (key) values ('" + key + "')");
      return handled::Completed{made()};
    };
  }
  Result<Ran> run(Client& client, const TransactionRequest& request, const Handler& handler) {
    return run_in_transaction(*postgres_session(client.get(), random_), request, handler);
  }
  std::string orders() { return observer_("select count(*) from public.orders"); }
  std::string records() { return observer_("select count(*) from einmal.record"); }

  SystemRandom random_;
  Database database_;
  Client observer_;
};

INSTANTIATE_TEST_SUITE_P(Isolation, PostgresSessions,
                         ::testing::Values("read committed", "repeatable read", "serializable"),
                         [](const auto& isolation) {
                           const std::string name = isolation.param;
                           return name.substr(0, name.find(' '));
                         });

TEST_P(PostgresSessions, RunAHandlerOnceAndReplayItsResult) {
  Client client(database_.conninfo());
  const auto first = run(client, request("k"), insert_order(client, "k"));
  ASSERT_EQ(said(first), "executed");
  EXPECT_FALSE(std::get<ran::Executed>(*first).failed);
  const auto again = run(client, request("k"), insert_order(client, "k"));
  ASSERT_EQ(said(again), "replayed");
  EXPECT_EQ(std::get<ran::Replayed>(*again).result, made());
  EXPECT_EQ(std::get<ran::Replayed>(*again).operation_id,
            std::get<ran::Executed>(*first).operation_id);
  EXPECT_EQ(said(run(client, request("k", 2), insert_order(client, "k"))), "mismatch");
  EXPECT_EQ(orders(), "1");
}

TEST_P(PostgresSessions, KeepARefusalAndUndoWhatTheHandlerWrote) {
  Client client(database_.conninfo());
  const Handler decline = [&](const Attempt&) -> HandlerOutcome {
    client("insert into public.orders (key) values ('declined')");
    StoredResult refusal;
    refusal.status = 402;
    return handled::Failed{refusal};
  };
  const auto first = run(client, request("k"), decline);
  ASSERT_EQ(said(first), "executed");
  EXPECT_TRUE(std::get<ran::Executed>(*first).failed);
  EXPECT_EQ(orders(), "0");
  const auto again = run(client, request("k"), insert_order(client, "k"));
  ASSERT_EQ(said(again), "replayed");
  EXPECT_TRUE(std::get<ran::Replayed>(*again).failed);
  EXPECT_EQ(std::get<ran::Replayed>(*again).result.status, 402);
}

TEST_P(PostgresSessions, KeepARefusalEvenWhenAStatementOfTheHandlerFailed) {
  Client client(database_.conninfo());
  observer_("insert into public.orders (key) values ('taken')");
  const auto ran = run(client, request("k"), [&](const Attempt&) -> HandlerOutcome {
    EXPECT_TRUE(
        client("insert into public.orders (key) values ('taken')").starts_with("ERROR 23505"));
    StoredResult refusal;
    refusal.status = 409;
    return handled::Failed{refusal};
  });
  EXPECT_EQ(said(ran), "executed");
  EXPECT_EQ(said(run(client, request("k"), insert_order(client, "k"))), "replayed");
}

TEST_P(PostgresSessions, FreeTheKeyWhenTheHandlerReleasesOrThrows) {
  Client client(database_.conninfo());
  EXPECT_EQ(said(run(client, request("k"),
                     [&](const Attempt&) -> HandlerOutcome {
                       client("insert into public.orders (key) values ('k')");
                       return handled::Released{};
                     })),
            "released");
  EXPECT_THROW(run(client, request("k"),
                   [&](const Attempt&) -> HandlerOutcome {
                     client("insert into public.orders (key) values ('k')");
                     throw HandlerFailed("no");
                   }),
               HandlerFailed);
  EXPECT_EQ(orders() + records(), "00");
  EXPECT_EQ(said(run(client, request("k", 2), insert_order(client, "k"))), "executed");
}

TEST_P(PostgresSessions, RebuildAnAnswerFromTheResourceId) {
  Client client(database_.conninfo());
  TransactionRequest wanted = request("k");
  StoredResult kept;
  kept.status = 201;
  kept.body_kept = BodyKept::by_choice;
  kept.resource_id = "order-7";
  kept.representation_version = 3;
  EXPECT_EQ(said(run(client, wanted, [&](const Attempt&) { return handled::Completed{kept}; })),
            "executed");
  wanted.rebuild = [](const StoredResult& stored) {
    StoredResult rebuilt = stored;
    rebuilt.body =
        *stored.resource_id + " in version " + std::to_string(stored.representation_version);
    return rebuilt;
  };
  const auto again = run(client, wanted, [&](const Attempt&) { return handled::Completed{kept}; });
  ASSERT_EQ(said(again), "replayed");
  EXPECT_EQ(std::get<ran::Replayed>(*again).result.body, "order-7 in version 3");
}

TEST_P(PostgresSessions, RefuseWhatTheyCannotDo) {
  Client client(database_.conninfo());
  TransactionRequest leased = request("k");
  leased.policies.lease = 30s;
  EXPECT_TRUE(said(run(client, leased, insert_order(client, "k"))).starts_with("error 2"));
  client("begin");
  EXPECT_TRUE(said(run(client, request("k"), insert_order(client, "k"))).starts_with("error 2"));
  EXPECT_EQ(client("select 'still open' "), "still open");
  client("rollback");
  StoredResult impossible = made();
  impossible.status = 9;
  EXPECT_TRUE(said(run(client, request("k"), [&](const Attempt&) {
                return handled::Completed{impossible};
              })).starts_with("error 2"));
  EXPECT_EQ(said(run(client, request("k"), insert_order(client, "k"))), "executed");
}

// --- C04: the duplicate does not hang

/// Holds its transaction open until told to end.
class Holder {
 public:
  Holder(PostgresSessions&, const std::string& conninfo, TransactionRequest request, bool fail)
      : client_(conninfo), thread_([this, request, fail] {
          const auto session = postgres_session(client_.get(), random_);
          try {
            ran_ = run_in_transaction(*session, request, [&](const Attempt&) -> HandlerOutcome {
              client_("insert into public.orders (key) values ('" + request.scope.key() + "')");
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
  Client client_;
  std::atomic<bool> inside_ = false, let_go_ = false;
  std::optional<Result<Ran>> ran_;
  std::thread thread_;
};

TEST_P(PostgresSessions, RejectADuplicateAtOnceAndKeepNobodyElseWaiting) {
  Holder holder(*this, database_.conninfo(), request("k"), false);
  std::vector<std::thread> threads;
  std::atomic<int> rejected = 0, others = 0;
  const auto before = Pace::now();
  for (int i = 0; i < 40; ++i) {
    threads.emplace_back([&, i] {
      Client client(database_.conninfo());
      SystemRandom random;
      const auto session = postgres_session(client.get(), random);
      const auto duplicate =
          run_in_transaction(*session, request("k", i % 5 == 4 ? 2 : 1), insert_order(client, "k"));
      rejected += said(duplicate) == "in progress" ? 1 : 0;
      if (i >= 20) return;
      const std::string key = "other" + std::to_string(i);
      const auto other = run_in_transaction(*session, request(key), insert_order(client, key));
      others += said(other) == "executed" ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LT(Pace::now() - before, 10s) << "one at a time would be quick; hanging would not";
  EXPECT_EQ(rejected, 40);
  EXPECT_EQ(others, 20);
  holder.end();
  EXPECT_EQ(orders(), "21");
  Client client(database_.conninfo());
  EXPECT_EQ(said(run(client, request("k"), insert_order(client, "k"))), "replayed");
}

TEST_P(PostgresSessions, WaitAsLongAsTheyWereToldAndNoLonger) {
  Holder holder(*this, database_.conninfo(), request("k"), false);
  Client client(database_.conninfo());
  TransactionRequest patient = request("k");
  patient.wait = 300ms;
  const auto before = Pace::now();
  EXPECT_EQ(said(run(client, patient, insert_order(client, "k"))), "in progress");
  EXPECT_GE(Pace::now() - before, 290ms);
  EXPECT_LT(Pace::now() - before, 10s);
}

TEST_P(PostgresSessions, GiveAWaiterTheReplayOrLetItExecuteButNeverAnUncommittedSuccess) {
  for (const bool fails : {false, true}) {
    const std::string key = fails ? "fails" : "succeeds";
    Holder holder(*this, database_.conninfo(), request(key), fails);
    Client client(database_.conninfo());
    TransactionRequest patient = request(key);
    patient.wait = 60s;
    std::optional<Result<Ran>> waited;
    std::thread waiter([&] { waited = run(client, patient, insert_order(client, key)); });
    EXPECT_TRUE(eventually([&] { return client.waits_for_lock(observer_); }));
    holder.end();
    waiter.join();
    EXPECT_EQ(said(*waited), fails ? "executed" : "replayed");
    EXPECT_EQ(observer_("select count(*) from public.orders where key = '" + key + "'"), "1");
  }
}

TEST_P(PostgresSessions, LetNoConflictOfUnrelatedKeysReachACaller) {
  std::vector<std::thread> threads;
  std::atomic<int> executed = 0;
  std::mutex mutex;
  std::set<std::string> other_answers;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Client client(database_.conninfo());
      SystemRandom random;
      for (int i = 0; i < 15; ++i) {
        const std::string key = std::to_string(t) + "-" + std::to_string(i);
        TransactionRequest wanted = request(key);
        wanted.attempts = 1000;
        const auto session = postgres_session(client.get(), random);
        const auto ran =
            run_in_transaction(*session, wanted, [&](const Attempt&) -> HandlerOutcome {
              // Reads, then writes what others read: the classical reason for a conflict.
              const std::string amount = client("select amount from public.balance");
              if (client("update public.balance set amount = amount + 1").starts_with("ERROR"))
                throw HandlerFailed("a statement failed");
              return handled::Completed{made(amount)};
            });
        if (said(ran) == "executed") {
          ++executed;
        } else {
          const std::lock_guard lock(mutex);
          other_answers.insert(said(ran));
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(executed, 120);
  EXPECT_TRUE(other_answers.empty()) << *other_answers.begin();
  EXPECT_EQ(observer_("select amount from public.balance"), "120");
}

TEST_P(PostgresSessions, TellAHandlerThatMustNotRunTwiceOfTheConflict) {
  Client client(database_.conninfo()), rival(database_.conninfo());
  TransactionRequest once = request("k");
  once.may_run_again = false;
  int runs = 0;
  const auto ran = run(client, once, [&](const Attempt&) -> HandlerOutcome {
    ++runs;
    client("select amount from public.balance");
    rival("update public.balance set amount = amount + 1");
    client("update public.balance set amount = amount + 1");
    return handled::Completed{made()};
  });
  EXPECT_EQ(runs, 1);
  if (std::string(GetParam()) == "read committed")
    EXPECT_EQ(said(ran), "executed");
  else
    EXPECT_TRUE(said(ran).starts_with("error 0")) << said(ran);
  EXPECT_EQ(records(), std::string(GetParam()) == "read committed" ? "1" : "0");
}

// --- C14: COMMIT says fine and means rolled back

TEST_P(PostgresSessions, NeverReportSuccessWhenAFailedStatementWasSwallowed) {
  Client client(database_.conninfo());
  observer_("insert into public.orders (key) values ('taken')");
  for (const bool last : {false, true}) {
    const auto ran = run(client, request("k"), [&](const Attempt&) -> HandlerOutcome {
      if (last) client("insert into public.orders (key) values ('k')");
      client("insert into public.orders (key) values ('taken')");
      if (!last) client("insert into public.orders (key) values ('k')");
      return handled::Completed{made()};
    });
    EXPECT_TRUE(said(ran).starts_with("error 2")) << said(ran);
    EXPECT_EQ(orders() + records(), "10");
  }
  EXPECT_EQ(said(run(client, request("k"), insert_order(client, "k"))), "executed");
}

TEST_P(PostgresSessions, AllowAFailureThatTheHandlersOwnSavepointUndid) {
  Client client(database_.conninfo());
  observer_("insert into public.orders (key) values ('taken')");
  const auto ran = run(client, request("k"), [&](const Attempt&) -> HandlerOutcome {
    client("savepoint mine");
    client("insert into public.orders (key) values ('taken')");
    client("rollback to savepoint mine");
    client("insert into public.orders (key) values ('k')");
    return handled::Completed{made()};
  });
  EXPECT_EQ(said(ran), "executed");
  EXPECT_EQ(orders() + records(), "21");
}

TEST_P(PostgresSessions, RollBackWhenAConstraintIsDeferredToTheCommit) {
  Client client(database_.conninfo());
  observer_(
      "create table public.parents (id int primary key);"
      "create table public.children (id int references public.parents deferrable initially "
      "deferred)");
  const auto ran = run(client, request("k"), [&](const Attempt&) -> HandlerOutcome {
    EXPECT_EQ(client("insert into public.children values (1)"), "");
    return handled::Completed{made()};
  });
  EXPECT_TRUE(said(ran).starts_with("error 2")) << said(ran);
  EXPECT_EQ(observer_("select count(*) from public.children") + records(), "00");
  EXPECT_EQ(said(run(client, request("k"), insert_order(client, "k"))), "executed");
}

TEST_P(PostgresSessions, NoticeAHandlerThatEndsTheTransactionItself) {
  Client client(database_.conninfo());
  for (const std::string verb :
       {"commit", "rollback", "commit; begin", "rollback; begin", "rollback; begin; savepoint mine",
        "commit and chain", "rollback and chain"}) {
    const auto ran = run(client, request("k"), [&](const Attempt&) -> HandlerOutcome {
      client("insert into public.orders (key) values ('k')");
      client(verb);
      return handled::Completed{made()};
    });
    EXPECT_TRUE(said(ran).starts_with("error 2")) << verb << ": " << said(ran);
    EXPECT_EQ(orders() + records(), "00") << verb;
    EXPECT_EQ(client("select 1"), "1") << "usable after " << verb;
  }
  EXPECT_EQ(said(run(client, request("k"), insert_order(client, "k"))), "executed");
}

TEST_P(PostgresSessions, TakeTheConnectionBackFromAHandlerThatLeftItInTheMiddleOfSomething) {
  Client client(database_.conninfo());
  int number = 0;
  const auto with = [&](const std::function<void()>& leave) {
    const std::string key = "k" + std::to_string(++number);
    return said(run(client, request(key), [&](const Attempt&) -> HandlerOutcome {
      client("insert into public.orders (key) values ('" + key + "')");
      leave();
      return handled::Completed{made()};
    }));
  };
  EXPECT_EQ(with([&] { PQsendQuery(client.get(), "select 1"); }), "executed");
  EXPECT_EQ(with([&] { client("savepoint left_open"); }), "executed");
  EXPECT_EQ(with([&] {
              PQenterPipelineMode(client.get());
              PQsendQueryParams(client.get(), "select 1", 0, nullptr, nullptr, nullptr, nullptr, 0);
            }),
            "executed");
  EXPECT_EQ(with([&] { PQsetnonblocking(client.get(), 1); }), "executed");
  EXPECT_EQ(with([&] { PQclear(PQexec(client.get(), "copy public.orders to stdout")); }),
            "executed");
  EXPECT_TRUE(with([&] {
                PQclear(PQexec(client.get(), "copy public.orders (key) from stdin"));
              }).starts_with("error 2"));
  EXPECT_EQ(orders() + records(), "55");
}

TEST_P(PostgresSessions, AreNotFooledWhenTheServerEndsTheSession) {
  Client client(database_.conninfo());
  const auto terminated = run(client, request("k"), [&](const Attempt&) -> HandlerOutcome {
    client("insert into public.orders (key) values ('k')");
    observer_("select pg_terminate_backend(" + std::to_string(client.pid()) + ")");
    return handled::Completed{made()};
  });
  EXPECT_TRUE(said(terminated).starts_with("error 0")) << said(terminated);
  EXPECT_EQ(orders() + records(), "00");
  const auto idle = run(client, request("k"), [&](const Attempt&) -> HandlerOutcome {
    client("insert into public.orders (key) values ('k')");
    client("set idle_in_transaction_session_timeout = '50ms'");
    eventually([&] {
      return observer_("select count(*) from pg_stat_activity where pid = " +
                       std::to_string(client.pid())) == "0";
    });
    return handled::Completed{made()};
  });
  EXPECT_TRUE(said(idle).starts_with("error 0")) << said(idle);
  EXPECT_EQ(orders() + records(), "00");
  EXPECT_EQ(said(run(client, request("k"), insert_order(client, "k"))), "executed");
}

TEST_P(PostgresSessions, ReadBackACommitWhoseConfirmationWasLost) {
  test::TcpGate gate(test::shared_server().socket_path());
  Client client("host=127.0.0.1 port=" + std::to_string(gate.port()) +
                " user=postgres dbname=" + database_.name());
  // A trigger at the commit stops until the network has been cut behind it.
  observer_(
      "create function public.wait_at_commit() returns trigger language plpgsql as $$ begin"
      " perform pg_advisory_lock_shared(4711); return null; end $$;"
      "create constraint trigger slow after insert on public.orders deferrable initially deferred"
      " for each row execute function public.wait_at_commit()");
  observer_("select pg_advisory_lock(4711)");
  std::optional<Result<Ran>> ran;
  std::thread thread([&] { ran = run(client, request("k"), insert_order(client, "k")); });
  EXPECT_TRUE(eventually([&] { return client.waits_for_lock(observer_); }));
  gate.cut();
  observer_("select pg_advisory_unlock(4711)");
  thread.join();
  EXPECT_EQ(said(*ran), "executed") << "the commit went through, only its answer did not";
  EXPECT_EQ(orders() + records(), "11");
  EXPECT_EQ(said(run(client, request("k"), insert_order(client, "k"))), "replayed");
}

TEST_P(PostgresSessions, ReadBackThatACommitNeverHappened) {
  test::TcpGate gate(test::shared_server().socket_path());
  Client client("host=127.0.0.1 port=" + std::to_string(gate.port()) +
                " user=postgres dbname=" + database_.name());
  const auto ran = run(client, request("k"), [&](const Attempt&) -> HandlerOutcome {
    client("insert into public.orders (key) values ('k')");
    gate.cut();
    return handled::Completed{made()};
  });
  EXPECT_TRUE(said(ran).starts_with("error 0")) << said(ran);
  EXPECT_EQ(orders() + records(), "00");
  EXPECT_EQ(said(run(client, request("k"), insert_order(client, "k"))), "executed");
}

TEST_P(PostgresSessions, SayInDoubtWhenItCannotBeReadBack) {
  test::TcpGate gate(test::shared_server().socket_path());
  Client client("host=127.0.0.1 port=" + std::to_string(gate.port()) +
                " user=postgres dbname=" + database_.name());
  const auto session =
      postgres_session(client.get(), random_, {.read_back = 300ms, .prepare = true});
  const auto ran =
      run_in_transaction(*session, request("k"), [&](const Attempt&) -> HandlerOutcome {
        gate.refuse(true);
        gate.cut();
        return handled::Completed{made()};
      });
  EXPECT_TRUE(said(ran).starts_with("error 1")) << said(ran);
}

}  // namespace
}  // namespace einmal
