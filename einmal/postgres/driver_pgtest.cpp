#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "einmal/postgres/pg_fixture.hpp"
#include "einmal/postgres/postgres_store.hpp"
#include "einmal/testing/process.hpp"
#include "einmal/testing/tcp_gate.hpp"

/// What the driver does when the server, the network or another transaction is in the way.
namespace einmal {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::Database;
using test::eventually;
using Pace = std::chrono::steady_clock;

/// A command whose answer is waited for elsewhere.
class Asked final : public Command {
 public:
  Asked(Store& store, Request request) : Command(std::move(request)) { store.submit(*this); }
  void completed(Result<Answer> answer) noexcept override { promise_.set_value(std::move(answer)); }
  const Result<Answer>& answer() {
    if (!answer_) answer_.emplace(future_.get());
    return *answer_;
  }

 private:
  std::promise<Result<Answer>> promise_;
  std::future<Result<Answer>> future_ = promise_.get_future();
  std::optional<Result<Answer>> answer_;
};

class Driver : public ::testing::Test {
 protected:
  static Scope scope(const std::string& key) { return *Scope::make("app", "alice", "pay", key); }

  std::unique_ptr<Store> open(const std::string& conninfo, PostgresStoreOptions options = {}) {
    auto store = open_postgres_store(conninfo, options, clock_, random_);
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }
  request::Transition claim(const std::string& key, std::uint8_t body = 1) {
    event::Claim claim;
    claim.fingerprint.digest[0] = body;
    claim.owner = OwnerToken::draw(random_);
    claim.operation_id = OperationId::draw(random_);
    claim.policies.lease = 30s;
    return {scope(key), claim, nullptr, {}};
  }
  static request::Transition settle(const Scope& scope, const Record& record) {
    StoredResult result;
    result.status = 201;
    result.body = "made";
    return {scope,
            event::Settle{event::Final::completed, record.generation, record.owner, result, false},
            nullptr,
            {}};
  }
  /// "execute", "replay", "in progress", "other" or "error N".
  static std::string said(const Result<Answer>& answer) {
    if (!answer) return "error " + std::to_string(static_cast<int>(answer.error().code));
    const auto* decision = std::get_if<Decision>(&*answer);
    if (!decision) return "other";
    if (std::holds_alternative<decision::Execute>(*decision)) return "execute";
    if (std::holds_alternative<decision::Replay>(*decision)) return "replay";
    if (std::holds_alternative<decision::InProgress>(*decision)) return "in progress";
    if (std::holds_alternative<decision::Ok>(*decision)) return "ok";
    if (std::holds_alternative<decision::Lost>(*decision)) return "lost";
    return "other";
  }
  static std::string code(ErrorCode code) {
    return "error " + std::to_string(static_cast<int>(code));
  }
  static Record record_of(const Result<Answer>& answer) {
    return std::get<decision::Execute>(std::get<Decision>(*answer)).record;
  }

  SystemClock clock_;
  SystemRandom random_;
};

TEST_F(Driver, SaysWhatToDoWhenTheSchemaIsMissingOrNewer) {
  Database empty(false);
  auto store = open_postgres_store(empty.conninfo(), {}, clock_, random_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::incompatible);
  Database newer;
  Client(newer.conninfo())("update einmal.store set min_writer = 9999");
  store = open_postgres_store(newer.conninfo(), {}, clock_, random_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::incompatible);
  store = open_postgres_store("host=/nonexistent dbname=x", {}, clock_, random_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::unavailable);
}

TEST_F(Driver, NeedsNoMoreThanTheRightsOfAGateway) {
  Database database;
  Client(database.conninfo())(
      "do $$ begin if not exists (select from pg_roles where rolname = 'gateway_only') then"
      " create role gateway_only login in role einmal_gateway; end if; end $$");
  auto store = open(database.conninfo("gateway_only"));
  auto claimed = ask(*store, claim("k"));
  EXPECT_EQ(said(claimed), "execute");
  EXPECT_EQ(said(ask(*store, settle(scope("k"), record_of(claimed)))), "ok");
  EXPECT_EQ(said(ask(*store, claim("k"))), "replay");
  for (Request request :
       {Request(request::ReadScope{scope("k"), true}), Request(request::ReadAudit{}),
        Request(request::Overdue{}), Request(request::Sweep{}), Request(request::List{}),
        Request(request::Stats{}), Request(request::LiveOperations{"app"}),
        Request(request::CountCaller{"app", "alice"}), Request(request::ReadProfile{})}) {
    const auto answer = ask(*store, std::move(request));
    EXPECT_TRUE(answer) << answer.error().message;
  }
  const auto refused = ask(*store, request::AcceptTime{{"gateway", "no"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::incompatible);
}

TEST_F(Driver, AnswersAtOnceWhileAnApplicationsTransactionHoldsTheKey) {
  Database database;
  auto store = open(database.conninfo());
  Client application(database.conninfo());
  application("begin");
  application(
      "create temp table c as select * from einmal.claim('alice', 'pay', 'k', "
      "decode('01' || repeat('00', 31), 'hex'))");
  const auto before = Pace::now();
  Asked held(*store, claim("k")), other(*store, claim("another"));
  EXPECT_EQ(said(other.answer()), "execute");
  EXPECT_EQ(said(held.answer()), "in progress");
  EXPECT_GE(Pace::now() - before, 100ms);
  EXPECT_LT(Pace::now() - before, 2s);
  application("select einmal.complete('alice', 'pay', 'k', generation, owner, 201, 'x') from c");
  EXPECT_EQ(application("commit"), "");
  EXPECT_EQ(said(ask(*store, claim("k"))), "replay");
}

TEST_F(Driver, LetsAnOwnersEventWaitUntilTheKeyIsLetGo) {
  Database database;
  auto store = open(database.conninfo());
  const Record mine = record_of(ask(*store, claim("k")));
  Client holder(database.conninfo());
  holder(
      "begin; select einmal.renew('alice', 'pay', 'k', 99, gen_random_uuid())");  // lost, but locks
  Asked settled(*store, settle(scope("k"), mine));
  EXPECT_EQ(said(ask(*store, claim("unrelated"))), "execute");
  EXPECT_EQ(said(ask(*store, claim("k"))), "in progress");
  holder("commit");
  EXPECT_EQ(said(settled.answer()), "ok");
}

TEST_F(Driver, LetsOnlyTheGuiltyCommandOfABatchFail) {
  Database database;
  auto store = open(database.conninfo());
  EXPECT_EQ(said(ask(*store, claim("victim"))), "execute");
  // A row under the digest of one scope with the parts of another: two scopes collide.
  Client(database.conninfo())("update einmal.record set key = 'other' where key = 'victim'");
  std::map<std::string, std::unique_ptr<Asked>> asked;
  for (int i = 0; i < 50; ++i) {
    const std::string key = i == 25 ? "victim" : "k" + std::to_string(i);
    asked[key] = std::make_unique<Asked>(*store, claim(key));
  }
  for (auto& [key, command] : asked)
    EXPECT_EQ(said(command->answer()), key == "victim" ? code(ErrorCode::invalid) : "execute");
}

TEST_F(Driver, DoesNotTakeARefusedCommitForASuccess) {
  Database database;
  auto store = open(database.conninfo());
  Client admin(database.conninfo());
  admin(
      "create function public.refuse() returns trigger language plpgsql as $$ begin"
      " raise exception 'refused at commit'; end $$;"
      "create constraint trigger refuse after insert on einmal.record deferrable initially deferred"
      " for each row execute function public.refuse()");
  EXPECT_EQ(said(ask(*store, claim("k"))), code(ErrorCode::internal));
  admin("drop trigger refuse on einmal.record");
  EXPECT_EQ(said(ask(*store, claim("k"))), "execute");
}

TEST_F(Driver, GoesOnWhileTheSchemaChangesUnderIt) {
  Database database;
  auto store = open(database.conninfo());
  EXPECT_EQ(said(ask(*store, claim("k1"))), "execute");
  Client admin(database.conninfo());
  admin("alter table einmal.record add column later integer");
  EXPECT_EQ(said(ask(*store, claim("k1"))), "in progress");
  EXPECT_EQ(said(ask(*store, claim("k2"))), "execute");
  admin(
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
      "and datname = current_database()");
  std::string last;
  EXPECT_TRUE(eventually([&] {
    return (last = said(ask(*store, claim("k3")))) == "execute" || last == "in progress";
  })) << last;
}

TEST_F(Driver, RefusesWithinItsPatienceWhileTheServerIsDownAndComesBackByItself) {
  test::PostgresServer server;
  Database database(true, server);
  PostgresStoreOptions options;
  options.patience = 300ms;
  auto store = open(database.conninfo(), options);
  const Record mine = record_of(ask(*store, claim("k")));
  server.stop();
  EXPECT_TRUE(
      eventually([&] { return said(ask(*store, claim("x"))) == code(ErrorCode::unavailable); }));
  const auto before = Pace::now();
  Asked refused(*store, claim("y")), read(*store, request::ReadScope{scope("k"), true}),
      stats(*store, request::Stats{});
  for (Asked* each : {&refused, &read, &stats})
    EXPECT_EQ(said(each->answer()), code(ErrorCode::unavailable));
  EXPECT_LT(Pace::now() - before, 5s);
  server.start();
  EXPECT_TRUE(eventually([&] { return said(ask(*store, settle(scope("k"), mine))) == "ok"; }));
  EXPECT_EQ(said(ask(*store, claim("k"))), "replay");
}

TEST_F(Driver, LosesNothingItAnsweredWhenTheServerIsKilledUnderLoad) {
  test::PostgresServer server;
  Database database(true, server);
  auto store = open(database.conninfo());
  std::atomic<bool> stop = false;
  std::atomic<int> in_doubt = 0;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::map<std::string, Record> completed;  // what was answered as settled
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) {
        const std::string key = std::to_string(t) + "-" + std::to_string(i);
        const auto claimed = ask(*store, claim(key));
        if (!claimed) {
          in_doubt += claimed.error().code == ErrorCode::in_doubt ? 1 : 0;
          continue;
        }
        const Record record = record_of(claimed);
        const auto settled = ask(*store, settle(scope(key), record));
        if (said(settled) != "ok") continue;
        const std::lock_guard lock(mutex);
        completed.emplace(key, record);
      }
    });
  }
  for (int round = 0; round < 3; ++round) {
    std::size_t before = 0;
    {
      const std::lock_guard lock(mutex);
      before = completed.size();
    }
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex);
      return completed.size() > before + 200;
    }));
    server.kill();
    server.start();
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_GT(in_doubt, 0) << "nothing was under way when the server was killed";
  Client reader(database.conninfo());
  const auto kept =
      reader.column("select convert_from(key, 'UTF8') from einmal.record where state = 2");
  const std::set<std::string> there(kept.begin(), kept.end());
  std::size_t lost = 0;
  for (const auto& [key, record] : completed) lost += there.contains(key) ? 0 : 1;
  EXPECT_EQ(lost, 0u) << "of " << completed.size();
}

TEST_F(Driver, GetsThroughANetworkThatStallsCutsAndSlices) {
  Database database;
  test::TcpGate gate(test::shared_server().socket_path());
  PostgresStoreOptions options;
  options.statement_timeout = 500ms;
  auto store = open("host=127.0.0.1 port=" + std::to_string(gate.port()) +
                        " user=postgres dbname=" + database.name(),
                    options);
  gate.slice(1);
  const Record mine = record_of(ask(*store, claim("k")));
  EXPECT_EQ(said(ask(*store, settle(scope("k"), mine))), "ok");
  EXPECT_EQ(said(ask(*store, claim("k"))), "replay");
  gate.slice(0);
  for (int round = 0; round < 20; ++round) {
    // Cut in the middle of whatever the answer is, at a byte further on each time.
    gate.cut_to_client_after(std::size_t{400} + 37u * static_cast<std::size_t>(round));
    const std::string key = "cut" + std::to_string(round);
    const request::Transition request = claim(key);
    const std::string first = said(ask(*store, request));
    gate.cut_to_client_after(std::nullopt);
    EXPECT_TRUE(first == "execute" || first == code(ErrorCode::in_doubt) ||
                first == code(ErrorCode::unavailable))
        << first;
    // Repeated with its owner token, a claim in doubt becomes certain.
    EXPECT_TRUE(eventually([&] { return said(ask(*store, request)) == "execute"; }));
    EXPECT_EQ(said(ask(*store, claim(key))), "in progress");
  }
  gate.stall(true);
  const auto before = Pace::now();
  EXPECT_EQ(said(ask(*store, claim("stalled"))), code(ErrorCode::in_doubt));
  EXPECT_LT(Pace::now() - before, 20s);
  gate.stall(false);
  EXPECT_TRUE(eventually([&] { return said(ask(*store, claim("after"))) == "execute"; }));
}

TEST_F(Driver, CarriesABatchOfLargeBodiesWithoutStalling) {
  Database database;
  auto store = open(database.conninfo());
  const std::string large(2 << 20, 'x');
  std::vector<std::unique_ptr<Asked>> asked;
  for (int i = 0; i < 12; ++i) {
    const std::string key = "k" + std::to_string(i);
    request::Transition transition = settle(scope(key), record_of(ask(*store, claim(key))));
    std::get<event::Settle>(transition.event).result.body = large;
    asked.push_back(std::make_unique<Asked>(*store, std::move(transition)));
  }
  for (auto& each : asked) EXPECT_EQ(said(each->answer()), "ok");
  std::vector<std::unique_ptr<Asked>> replays;
  for (int i = 0; i < 12; ++i)
    replays.push_back(std::make_unique<Asked>(*store, claim("k" + std::to_string(i))));
  for (auto& each : replays) EXPECT_EQ(said(each->answer()), "replay");
}

TEST_F(Driver, TellsAWaitingProcessOfAChangeAndIsSilentWhenNobodyWaits) {
  Database database;
  auto here = open(database.conninfo()), there = open(database.conninfo());
  EXPECT_TRUE(here->capabilities().announces_changes);
  Client listener(database.conninfo());
  listener("listen einmal_changed");
  const auto notified = [&] {
    listener("select 1");
    int count = 0;
    while (PGnotify* notify = PQnotifies(listener.get())) {
      PQfreemem(notify);
      ++count;
    }
    return count;
  };
  const Record quiet = record_of(ask(*there, claim("quiet")));
  EXPECT_EQ(said(ask(*there, settle(scope("quiet"), quiet))), "ok");
  EXPECT_EQ(notified(), 0);

  std::atomic<int> told = 0;
  here->on_foreign_change([&] { ++told; });
  here->await_foreign_changes(true);
  // Until `there` has heard that somebody waits, polling tells; after that, messages do.
  int keys = 0;
  EXPECT_TRUE(eventually([&] {
    const std::string key = "k" + std::to_string(++keys);
    const Record record = record_of(ask(*there, claim(key)));
    return said(ask(*there, settle(scope(key), record))) == "ok" && notified() > 0;
  }));
  EXPECT_TRUE(eventually([&] { return told > 0; }));
  here->await_foreign_changes(false);
  here->on_foreign_change({});
}

TEST_F(Driver, TellsAWaiterByPollingWhereNobodyAnnounces) {
  Database database;
  auto store = open(database.conninfo());
  std::atomic<int> told = 0;
  store->on_foreign_change([&] { ++told; });
  store->await_foreign_changes(true);
  EXPECT_TRUE(eventually([&] { return told >= 2; }));
  store->await_foreign_changes(false);
  store->on_foreign_change({});
}

TEST_F(Driver, WorksBehindAPoolerThatSharesSessionsAndKnowsThatItCannotListenThere) {
  Database database;
  test::TempDir folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  {
    std::ofstream config(folder.file("pgbouncer.ini"));
    config << "[databases]\n* = host=" << test::shared_server().socket_folder()
           << "\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = " << folder.path().string()
           << "\nlisten_port = 6432\nauth_type = trust\nauth_file = " << folder.file("users")
           << "\npool_mode = transaction\ndefault_pool_size = 2\n";
    std::ofstream(folder.file("users")) << "\"postgres\" \"\"\n";
  }
  std::vector<std::string> arguments{"/usr/sbin/pgbouncer"};
  if (geteuid() == 0) arguments.insert(arguments.end(), {"-u", "postgres"});
  arguments.push_back(folder.file("pgbouncer.ini"));
  test::ChildProcess pooler(arguments);
  const std::string conninfo =
      "host=" + folder.path().string() + " port=6432 user=postgres dbname=" + database.name();
  ASSERT_TRUE(eventually([&] { return PQping(conninfo.c_str()) == PQPING_OK; })) << pooler.errors();
  auto store = open(conninfo);
  EXPECT_FALSE(store->capabilities().announces_changes);
  std::vector<std::unique_ptr<Asked>> asked;
  for (int i = 0; i < 200; ++i)
    asked.push_back(std::make_unique<Asked>(*store, claim("k" + std::to_string(i))));
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(said(asked[static_cast<std::size_t>(i)]->answer()), "execute");
    const Record record = record_of(asked[static_cast<std::size_t>(i)]->answer());
    EXPECT_EQ(said(ask(*store, settle(scope("k" + std::to_string(i)), record))), "ok");
  }
  EXPECT_EQ(said(ask(*store, claim("k7"))), "replay");
  Client server(database.conninfo());
  EXPECT_EQ(server("select count(*) from pg_prepared_statements"), "0");
}

TEST_F(Driver, AnswersEveryCommandBeforeItIsDestroyed) {
  Database database;
  std::vector<std::unique_ptr<Asked>> asked;
  {
    auto store = open(database.conninfo());
    for (int i = 0; i < 500; ++i)
      asked.push_back(std::make_unique<Asked>(*store, claim("k" + std::to_string(i))));
  }
  for (auto& each : asked) EXPECT_EQ(said(each->answer()), "execute");
  EXPECT_EQ(Client(database.conninfo())("select count(*) from einmal.record"), "500");
}

}  // namespace
}  // namespace einmal
