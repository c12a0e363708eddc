
#include <chrono>
#include <thread>

#include "einmal/core/derived_key.hpp"
#include "einmal/core/scope.hpp"
#include "einmal/postgres/pg_fixture.hpp"
#include "einmal/testing/process.hpp"

/// The SQL functions in the caller's own transactions: the contract for every language.
namespace einmal {
namespace {

using test::Client;
using test::Database;
using test::eventually;
using Clock = std::chrono::steady_clock;

std::string claim(const std::string& key, const std::string& more = "") {
  return "select decision from einmal.claim('alice', 'create-order', '" + key +
         "', sha256('body')" + (more.empty() ? "" : ", " + more) + ")";
}

/// claim, one row in public.orders, complete: in one statement, as a function of the application.
constexpr const char* application = R"sql(
create table public.orders (id bigint generated always as identity primary key, key text not null);
create table public.mine (generation bigint, owner uuid);
create function public.order_once(key text) returns text language plpgsql as $$
declare c einmal.claimed;
begin
  c := einmal.claim('alice', 'create-order', key, sha256('body'));
  if c.decision = 'execute' then
    insert into public.orders (key) values (order_once.key);
    return einmal.complete('alice', 'create-order', key, c.generation, c.owner, 201, 'made', 'Location: /orders/1');
  end if;
  return c.decision || coalesce(' ' || c.status || ' ' || convert_from(c.body, 'UTF8'), '');
end $$;
create function public.finish(verb text, key text) returns text language plpgsql as $$
declare answer text;
begin
  execute format('select einmal.%I(''alice'', ''create-order'', $1, m.generation, m.owner%s) from public.mine m', verb,
    case when verb in ('complete', 'fail') then ', 201' else '' end) into answer using key;
  return answer;
end $$;
)sql";

class Functions : public ::testing::Test {
 protected:
  Functions() : a(database.conninfo()), b(database.conninfo()), c(database.conninfo()) {
    a(application);
  }
  /// Claims and remembers generation and owner for `finish`.
  std::string claim_mine(Client& client, const std::string& key, const std::string& more = "") {
    client("delete from public.mine");
    return client("with c as (select * from einmal.claim('alice', 'create-order', '" + key +
                  "', sha256('body')" + (more.empty() ? "" : ", " + more) +
                  ")), m as (insert into public.mine select generation, owner from c) select "
                  "decision from c");
  }
  std::string finish(Client& client, const std::string& verb, const std::string& key) {
    return client("select public.finish('" + verb + "', '" + key + "')");
  }
  std::string orders() { return c("select count(*) from public.orders"); }

  Database database;
  Client a, b, c;
};

constexpr const char* levels[] = {"read committed", "repeatable read", "serializable"};

TEST_F(Functions, CommitClaimEffectAndResultTogetherAndReplayThem) {
  for (const std::string level : levels) {
    a("set default_transaction_isolation = '" + level + "'");
    EXPECT_EQ(a("select public.order_once('" + level.substr(0, 4) + "')"), "ok");
    EXPECT_EQ(a("select public.order_once('" + level.substr(0, 4) + "')"), "replay 201 made");
  }
  EXPECT_EQ(orders(), "3");
  EXPECT_EQ(b("select headers from einmal.claim('alice', 'create-order', 'read', sha256('body'))"),
            "\\x4c6f636174696f6e3a202f6f72646572732f31");
  EXPECT_EQ(b("select decision, status, body, owner, generation from einmal.claim('alice', "
              "'create-order', 'read', sha256('other'))"),
            "mismatch||||");
}

TEST_F(Functions, VanishWithTheTransactionThatCalledThem) {
  a("begin");
  EXPECT_EQ(a("select public.order_once('k')"), "ok");
  a("rollback");
  EXPECT_EQ(orders(), "0");
  EXPECT_EQ(b("select public.order_once('k')"), "ok");
  EXPECT_EQ(orders(), "1");
}

TEST_F(Functions, FailTheWholeTransactionThatWouldCommitAClaimWithoutItsOutcome) {
  for (const std::string level : levels) {
    a("begin isolation level " + level);
    EXPECT_EQ(a(claim("k")), "execute");
    a("insert into public.orders (key) values ('k')");
    EXPECT_TRUE(a("commit").starts_with("ERROR 23000 einmal: a key was claimed with lease NULL"));
    EXPECT_EQ(orders(), "0");
  }
  EXPECT_EQ(b("select public.order_once('k')"), "ok");
}

TEST_F(Functions, LetATransactionReleaseItsClaimAndCommit) {
  a("begin");
  EXPECT_EQ(claim_mine(a, "k"), "execute");
  EXPECT_EQ(finish(a, "release", "k"), "ok");
  EXPECT_EQ(a("commit"), "");
  EXPECT_EQ(b(claim("k", "lease => '1 h'")), "execute");
}

TEST_F(Functions, TreatAClaimThatASavepointUndidAsIfItNeverWas) {
  a("begin; delete from public.mine; savepoint s");
  EXPECT_EQ(a(claim("k")), "execute");
  a("rollback to s");
  EXPECT_EQ(b(claim("k", "lease => '1 h'")), "execute") << "the lock went with the savepoint";
  EXPECT_EQ(a("select einmal.complete('alice', 'create-order', 'k', 1, gen_random_uuid(), 201)"),
            "lost");
  EXPECT_EQ(a("commit"), "");
}

TEST_F(Functions, KeepARefusalAndUndoTheEffectWithASavepoint) {
  a("begin");
  EXPECT_EQ(claim_mine(a, "k"), "execute");
  a("savepoint s; insert into public.orders (key) values ('k'); rollback to s");
  EXPECT_EQ(finish(a, "fail", "k"), "ok");
  EXPECT_EQ(a("commit"), "");
  EXPECT_EQ(orders(), "0");
  EXPECT_EQ(
      b("select decision, status from einmal.claim('alice', 'create-order', 'k', sha256('body'))"),
      "replay|201");
}

TEST_F(Functions, RejectADuplicateAtOnceWhileTheFirstTransactionIsOpen) {
  for (const std::string level : levels) {
    for (Client* client : {&a, &b, &c})
      (*client)("set default_transaction_isolation = '" + level + "'");
    a("begin");
    EXPECT_EQ(a(claim("k")), "execute");
    const auto before = Clock::now();
    EXPECT_EQ(b("select decision, retry_after from einmal.claim('alice', 'create-order', 'k', "
                "sha256('body'))"),
              "in_progress|00:00:01");
    EXPECT_EQ(b("select decision from einmal.claim('alice', 'create-order', 'k', sha256('other'))"),
              "in_progress");
    EXPECT_EQ(b("select public.order_once('another')"),
              level == levels[0] ? "ok" : "replay 201 made");
    EXPECT_LT(Clock::now() - before, std::chrono::milliseconds(300));
    a("rollback");
  }
}

TEST_F(Functions, GiveTheLoserOfAFinishedRaceTheReplayOrTellItToStartANewTransaction) {
  for (const std::string level : levels) {
    const std::string key = "k-" + level.substr(0, 3);
    b("set default_transaction_isolation = '" + level + "'");
    a("begin");
    EXPECT_EQ(a("select public.order_once('" + key + "')"), "ok");
    b("begin");
    b.send("select decision, retry_after from einmal.claim('alice', 'create-order', '" + key +
           "', sha256('body'), in_flight => 'wait', wait => '1 min')");
    EXPECT_TRUE(eventually([&] { return b.waits_for_lock(c); }));
    a("commit");
    EXPECT_EQ(b.wait(), level == levels[0] ? "replay|" : "in_progress|00:00:00");
    EXPECT_EQ(b("select 'still usable'"), "still usable");
    EXPECT_EQ(b("rollback"), "");
    EXPECT_EQ(b("select public.order_once('" + key + "')"), "replay 201 made");
  }
  EXPECT_EQ(orders(), "3");
}

TEST_F(Functions, LetTheWaiterExecuteWhenTheFirstTransactionRollsBack) {
  for (const std::string level : levels) {
    b("set default_transaction_isolation = '" + level + "'");
    a("begin");
    EXPECT_EQ(a(claim("k")), "execute");
    b("begin");
    b.send(claim("k", "in_flight => 'wait', wait => '1 min'"));
    EXPECT_TRUE(eventually([&] { return b.waits_for_lock(c); }));
    a("rollback");
    EXPECT_EQ(b.wait(), "execute");
    b("rollback");
  }
}

TEST_F(Functions, WaitNoLongerThanTheyWereToldAndRestoreTheLockTimeout) {
  a("begin");
  EXPECT_EQ(a(claim("k")), "execute");
  b("set lock_timeout = '77s'; begin");
  const auto before = Clock::now();
  EXPECT_EQ(b(claim("k", "in_flight => 'wait', wait => '200 ms'")), "in_progress");
  EXPECT_GE(Clock::now() - before, std::chrono::milliseconds(190));
  EXPECT_EQ(b("show lock_timeout"), "77s");
  b.send(claim("k", "in_flight => 'wait', wait => '1 min'"));
  EXPECT_TRUE(eventually([&] { return b.waits_for_lock(c); }));
  a("rollback");
  EXPECT_EQ(b.wait(), "execute");
  EXPECT_EQ(b("show lock_timeout"), "77s");
  b("rollback");
}

TEST_F(Functions, AnswerInProgressToTheVictimOfADeadlock) {
  a("begin");
  b("begin");
  EXPECT_EQ(a(claim("k1", "in_flight => 'wait', wait => '1 min'")), "execute");
  EXPECT_EQ(b(claim("k2", "in_flight => 'wait', wait => '1 min'")), "execute");
  a.send(claim("k2", "in_flight => 'wait', wait => '1 min'"));
  EXPECT_TRUE(eventually([&] { return a.waits_for_lock(c); }));
  b.send(claim("k1", "in_flight => 'wait', wait => '1 min'"));
  EXPECT_TRUE(eventually([&] { return !a.is_busy() || !b.is_busy(); }));
  Client& victim = a.is_busy() ? b : a;
  EXPECT_EQ(victim.wait(), "in_progress");
  victim("rollback");
  Client& other = &victim == &a ? b : a;
  EXPECT_EQ(other.wait(), "execute");
  other("rollback");
}

TEST_F(Functions, AnswerInProgressToATransactionWhoseSnapshotIsOlderThanTheRecord) {
  for (const std::string level : {"repeatable read", "serializable"}) {
    const std::string key = "k-" + level.substr(0, 3);
    b("begin isolation level " + level);
    b("select count(*) from public.orders");  // takes the snapshot: claim is not the first
                                              // statement
    EXPECT_EQ(a("select public.order_once('" + key + "')"), "ok");
    EXPECT_EQ(b("select decision, retry_after from einmal.claim('alice', 'create-order', '" + key +
                "', sha256('body'))"),
              "in_progress|00:00:00");
    EXPECT_EQ(b("rollback"), "");
  }
}

TEST_F(Functions, AnswerInProgressWhenTheRecordChangedAfterTheSnapshot) {
  EXPECT_EQ(claim_mine(a, "k", "lease => '10 ms', on_lease_expiry => 'takeover'"), "execute");
  EXPECT_TRUE(eventually(
      [&] { return a("select lease_end < clock_timestamp() from einmal.records") == "t"; }));
  b("begin isolation level repeatable read; select 1");
  EXPECT_EQ(b("select count(*) from einmal.records"), "1");
  EXPECT_EQ(finish(a, "complete", "k"), "ok");
  EXPECT_EQ(b("select decision, retry_after from einmal.claim('alice', 'create-order', 'k', "
              "sha256('body'), "
              "lease => '1 s', on_lease_expiry => 'takeover')"),
            "in_progress|00:00:00");
  EXPECT_EQ(b("rollback"), "");
}

TEST_F(Functions, NeverHandOutAGenerationBelowOneThatIsOutWhenAClaimStallsBeforeItsInsert) {
  // The trigger stalls the insert of the first claim until somebody lets go of lock 1; its
  // generation is drawn already.
  a("create function public.stall() returns trigger language plpgsql as $$ begin"
    " if new.generation = 1 then perform pg_advisory_lock_shared(1); end if; return new; end $$;"
    "create trigger stall before insert on einmal.record for each row execute function "
    "public.stall()");
  c("select pg_advisory_lock(1)");
  a.send(
      "select decision, generation from einmal.claim('alice', 'create-order', 'k', sha256('body'), "
      "lease => '1 h')");
  EXPECT_TRUE(eventually([&] { return a.waits_for_lock(c); }));
  EXPECT_EQ(b(claim("k", "lease => '1 h'")), "in_progress");
  EXPECT_EQ(b("select generation from einmal.claim('alice', 'create-order', 'other', "
              "sha256('body'), lease => '1 h')"),
            "2");
  b.send(
      "select decision, generation from einmal.claim('alice', 'create-order', 'k', sha256('body'), "
      "lease => '1 h',"
      " in_flight => 'wait', wait => '1 min')");
  EXPECT_TRUE(eventually([&] { return b.waits_for_lock(c); }));
  EXPECT_EQ(c("select pg_terminate_backend(" + std::to_string(a.pid()) + ")"), "t");
  EXPECT_EQ(b.wait(), "execute|3") << "the number of the claim that vanished is not used again";
}

TEST_F(Functions, ReadTheClockOnlyWhenTheyHoldTheKey) {
  a("begin");
  EXPECT_EQ(a(claim("k")), "execute");
  b.send(claim("k", "lease => '1 h', in_flight => 'wait', wait => '1 min'"));
  EXPECT_TRUE(eventually([&] { return b.waits_for_lock(c); }));
  c("create table public.let_go as select clock_timestamp() as at");
  a("rollback");
  EXPECT_EQ(b.wait(), "execute");
  EXPECT_EQ(c("select claimed > at and lease_end > at + interval '1 h' from einmal.records, "
              "public.let_go"),
            "t");
}

TEST_F(Functions, MakeTheCommitDurableWhateverTheSessionPrefersAndLeaveStrongerSettingsAlone) {
  const auto setting_after = [&](const std::string& before, const std::string& call) {
    a("set synchronous_commit = " + before);
    a("begin; " + call);
    const std::string after = a("show synchronous_commit");
    a("rollback");
    EXPECT_EQ(a("show synchronous_commit"), before);
    return after;
  };
  const std::string settle =
      "select einmal.complete('alice', 'create-order', 'k', 1, gen_random_uuid(), 201)";
  for (const std::string weak : {"off", "local", "remote_write"}) {
    EXPECT_EQ(setting_after(weak, claim("k", "lease => '1 h'")), "on");
    EXPECT_EQ(setting_after(weak, settle), "on");
  }
  EXPECT_EQ(setting_after("remote_apply", claim("k", "lease => '1 h'")), "remote_apply");
}

TEST_F(Functions, MakeTheCommitDurableEvenIfTheTransactionWeakensItAfterwards) {
  a("create table public.seen (setting text)");
  a("create function public.see() returns trigger language plpgsql as $$ begin"
    " insert into public.seen values (current_setting('synchronous_commit')); return null; end $$;"
    "create constraint trigger zz after insert on public.orders deferrable initially deferred"
    " for each row execute function public.see()");
  a("begin");
  EXPECT_EQ(a(claim("k")), "execute");
  a("select einmal.release('alice', 'create-order', 'k', generation, owner) from einmal.record; "
    "rollback");
  a("begin; select public.order_once('k')");
  a("set local synchronous_commit = off; commit");
  EXPECT_EQ(b("select setting from public.seen"), "on");
}

TEST_F(Functions, RefuseInputThatNamesNoOperation) {
  for (const std::string call :
       {"einmal.claim('', 'o', 'k', sha256('b'))",
        "einmal.claim(null, 'o', 'k', sha256('b'))",
        "einmal.claim('a', 'o', '', sha256('b'))",
        "einmal.claim('a', 'o', 'a b', sha256('b'))",
        "einmal.claim('a', 'o', 'sch\u00f6n', sha256('b'))",
        "einmal.claim('a', 'o', repeat('k', 256), sha256('b'))",
        "einmal.claim(repeat('a', 1025), 'o', 'k', sha256('b'))",
        "einmal.claim('a', 'o', 'k', '\\x00')",
        "einmal.claim('a', 'o', 'k', null)",
        "einmal.claim('a', 'o', 'k', sha256('b'), lease => '0')",
        "einmal.claim('a', 'o', 'k', sha256('b'), lease => '-1 s')",
        "einmal.claim('a', 'o', 'k', sha256('b'), lease => '2 days')",
        "einmal.claim('a', 'o', 'k', sha256('b'), retention => '-1 s')",
        "einmal.claim('a', 'o', 'k', sha256('b'), retention => null)",
        "einmal.claim('a', 'o', 'k', sha256('b'), on_lease_expiry => 'maybe')",
        "einmal.claim('a', 'o', 'k', sha256('b'), in_flight => 'maybe')",
        "einmal.claim('a', 'o', 'k', sha256('b'), after_expiry => 'maybe')",
        "einmal.claim('a', 'o', 'k', sha256('b'), owner => null)",
        "einmal.complete('a', 'o', 'k', null, gen_random_uuid(), 201)",
        "einmal.complete('a', 'o', 'k', 1, gen_random_uuid(), 99)",
        "einmal.complete('a', 'o', 'k', 1, gen_random_uuid(), null)",
        "einmal.release('a', 'o', 'k', 1, null)",
        "einmal.resolve('a', 'o', 'k', 1, 'maybe', 'e')",
        "einmal.resolve('a', 'o', 'k', 1, 'completed', 'e')"}) {
    EXPECT_TRUE(a("select " + call).starts_with("ERROR 22023 einmal"))
        << call << " -> " << a("select " + call);
  }
  EXPECT_EQ(a("select count(*) from einmal.record"), "0");
}

TEST_F(Functions, WorkAsLeasesAcrossTransactions) {
  EXPECT_EQ(claim_mine(a, "k", "lease => '1 h', on_lease_expiry => 'takeover'"), "execute");
  EXPECT_EQ(b(claim("k", "lease => '1 h'")), "in_progress");
  EXPECT_EQ(b("select decision from einmal.claim('alice', 'create-order', 'k', sha256('other'))"),
            "mismatch");
  EXPECT_EQ(finish(a, "renew", "k"), "ok");
  EXPECT_EQ(finish(a, "abandon", "k"), "ok");
  EXPECT_EQ(
      b("select decision, attempts from einmal.claim('alice', 'create-order', 'k', sha256('body'),"
        " lease => '1 h', on_lease_expiry => 'takeover')"),
      "execute|2");
  EXPECT_EQ(finish(a, "complete", "k"), "lost");
  EXPECT_EQ(b("select einmal.mark_uncertain('alice', 'create-order', 'k', generation, owner) from "
              "einmal.record"),
            "ok");
  EXPECT_EQ(b(claim("k", "lease => '1 h'")), "uncertain");
  EXPECT_EQ(
      a("select einmal.resolve('alice', 'create-order', 'k', 99, 'completed', 'ledger', 201)"),
      "changed");
  EXPECT_EQ(a("select einmal.resolve('alice', 'create-order', 'k', generation, 'completed', "
              "'ledger', 201, 'made')"
              " from einmal.record"),
            "ok");
  EXPECT_EQ(b("select decision, resolved from einmal.claim('alice', 'create-order', 'k', "
              "sha256('body'))"),
            "replay|t");
  EXPECT_EQ(a("select einmal.forget('alice', 'create-order', 'k', generation, 'asked for') from "
              "einmal.record"),
            "ok");
  EXPECT_EQ(b(claim("k", "lease => '1 h'")), "execute");
  EXPECT_EQ(c("select string_agg(event::text, ' ' order by id) from einmal.audit"), "1 4 2 5 6");
}

TEST_F(Functions, ReplayAResourceIdWithoutABody) {
  EXPECT_EQ(claim_mine(a, "k", "lease => '1 h'"), "execute");
  EXPECT_EQ(a("select einmal.complete('alice', 'create-order', 'k', generation, owner, 201, "
              "resource_id => 'order-7',"
              " representation_version => 3) from public.mine"),
            "ok");
  EXPECT_EQ(b("select decision, body is null, resource_id, representation_version from"
              " einmal.claim('alice', 'create-order', 'k', sha256('body'))"),
            "replay|t|order-7|3");
}

TEST_F(Functions, DeriveTheKeyThatTheDocumentationConstructs) {
  const Scope scope = *Scope::make("app", "alice", "pay", "k");
  EXPECT_EQ(a("select einmal.derive_key('alice', 'pay', 'k')"), derive_key(scope));
  EXPECT_EQ(a("select einmal.derive_key('alice', 'pay', 'k', 'charge')"),
            derive_key(scope, "charge"));
  EXPECT_EQ(a("select einmal.derive_key('alice', 'pay', 'k', '')"), derive_key(scope, ""));
  EXPECT_EQ(a("select einmal.derive_uuid('alice', 'pay', 'k', 'charge')"),
            derive_uuid(scope, "charge"));
  // The golden values of einmal/core/derived_key_test.cpp.
  EXPECT_EQ(a("select einmal.derive_key('alice', 'pay', 'k', 'charge')"),
            "1cfccee94246ab703e0bfb10ce807103235e0b6791bfa868619b2e5268d825b9");
  EXPECT_EQ(a("select einmal.derive_uuid('alice', 'pay', 'k', 'charge')"),
            "1cfccee9-4246-8b70-be0b-fb10ce807103");
  EXPECT_EQ(a("select einmal.derive_key(convert_from('\\x6dc3bc6c6c6572', 'UTF8'), 'pay', 'k', "
              "convert_from('\\x72c3bc636b', 'UTF8'))"),
            "c6be07f5ebd80316a9b7e52ffc309093c258801645c89fb6de46239677f07faa");
}

TEST_F(Functions, DeriveTheSameKeyAcrossTakeoverReleaseFreeAndExpiry) {
  const std::string key = "select einmal.derive_key('alice', 'create-order', 'k', 'charge')";
  const std::string before = a(key);
  EXPECT_EQ(claim_mine(a, "k", "lease => '1 h'"), "execute");
  EXPECT_EQ(a(key), before);
  EXPECT_EQ(a("select einmal.release('alice', 'create-order', 'k', generation, owner) from "
              "public.mine"),
            "ok");
  EXPECT_EQ(a(key), before);
  EXPECT_EQ(claim_mine(a, "k", "lease => '1 h'"), "execute");
  EXPECT_EQ(a(key), before);
}

TEST_F(Functions, AreNotLedAstrayByTheCallersSearchPath) {
  a("create schema evil; create function evil.octet_length(text) returns int language sql return 0;"
    "create function evil.sha256(bytea) returns bytea language sql return '\\x00'::bytea;"
    "create function evil.nextval(regclass) returns bigint language sql return 7::bigint;"
    "create function evil.clock_timestamp() returns timestamptz language sql return "
    "'1999-01-01'::timestamptz");
  b("set search_path = evil, pg_catalog, public");
  EXPECT_EQ(b("select decision from einmal.claim('alice', 'o', 'k', "
              "pg_catalog.sha256('body'), lease => '1 h')"),
            "execute");
  EXPECT_EQ(b("select einmal.complete('alice', 'o', 'k', generation, owner, 201) "
              "from einmal.record"),
            "ok");
  EXPECT_EQ(a("select generation, claimed > '2020-01-01' from einmal.records"), "1|t");
}

TEST_F(Functions, SweepAndOverdueFromManySessionsTouchEveryRecordOnce) {
  a("select einmal.claim('alice', 'o', 'k' || i, sha256('b'), lease => '10 ms') from "
    "generate_series(1, 300) i");
  a("select einmal.complete('alice', 'o', 'd' || i, c.generation, c.owner, 201) from "
    "generate_series(1, 300) i,"
    " lateral einmal.claim('alice', 'o', 'd' || i, sha256('b'), lease => '1 h', retention => '1 "
    "ms') c");
  EXPECT_TRUE(eventually([&] {
    return a("select bool_and(lease_end < clock_timestamp()) from einmal.records where state = "
             "'processing'") == "t";
  }));
  std::atomic<int> uncertain = 0, removed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      Client client(database.conninfo());
      for (int round = 0; round < 40; ++round) {
        uncertain += std::stoi(client("select (einmal.overdue(50)).changed"));
        removed += std::stoi(client("select (einmal.sweep(50)).changed"));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(uncertain, 300);
  EXPECT_EQ(removed, 300);
  EXPECT_EQ(a("select count(*) filter (where state = 'uncertain'), count(*) from einmal.records"),
            "300|300");
}

}  // namespace
}  // namespace einmal
