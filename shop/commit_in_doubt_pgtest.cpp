#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "einmal/postgres/pg_fixture.hpp"
#include "einmal/testing/tcp_gate.hpp"
#include "support/shop.hpp"

/// The network between the shop and its books breaks while a COMMIT is on its way.

namespace einmal::test {
namespace {

class CommitInDoubt : public ::testing::Test {
 protected:
  CommitInDoubt()
      : shop_(ShopProcess::Ledger{"postgresql://postgres@127.0.0.1:" +
                                  std::to_string(gate_.port()) + "/" + database_.name()},
              {"--idempotent"}),
        server_(database_.conninfo()) {
    // A commit of an effect stops until the network has been cut behind it.
    server_(
        "create function shop.wait_at_commit() returns trigger language plpgsql as $$ begin"
        " perform pg_advisory_lock_shared(4711); return null; end $$;"
        "create constraint trigger slow after insert on shop.effects deferrable initially deferred"
        " for each row execute function shop.wait_at_commit()");
  }

  HttpAnswer order() {
    return HttpClient(shop_.port())
        .post("/orders", R"({"item":"coffee","amount":300})", {{"Idempotency-Key", "K"}});
  }
  std::string effects() { return server_("select count(*) from shop.effects"); }
  /// Sends the order and returns once its COMMIT stands still.
  std::thread order_up_to_the_commit(HttpAnswer& answer) {
    server_("select pg_advisory_lock(4711)");
    std::thread client([&] { answer = order(); });
    EXPECT_TRUE(eventually([&] {
      return server_(
                 "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                 " and datname = current_database()") == "1";
    }));
    return client;
  }

  Database database_{false};
  TcpGate gate_{shared_server().socket_path()};
  ShopProcess shop_;
  Client server_;
};

TEST_F(CommitInDoubt, IsReadBackAndAnsweredAsWhatItWas) {
  HttpAnswer answer;
  std::thread client = order_up_to_the_commit(answer);
  gate_.cut();
  server_("select pg_advisory_unlock(4711)");
  client.join();
  EXPECT_EQ(answer.status, 201) << "the commit went through, only its confirmation did not";
  EXPECT_EQ(answer.header("Idempotency-Status"), "executed");
  const auto again = order();
  EXPECT_EQ(again.header("Idempotency-Status"), "replayed");
  EXPECT_EQ(again.body, answer.body);
  EXPECT_EQ(effects(), "1");
}

TEST_F(CommitInDoubt, OfATransactionThatTheServerEndedIsAnErrorAndLeavesTheKeyFree) {
  HttpAnswer answer;
  std::thread client = order_up_to_the_commit(answer);
  server_(
      "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and"
      " datname = current_database()");
  server_("select pg_advisory_unlock(4711)");
  client.join();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.member("reason"), "store-unavailable");
  EXPECT_EQ(effects(), "0");
  EXPECT_EQ(order().header("Idempotency-Status"), "executed");
  EXPECT_EQ(effects(), "1");
}

TEST_F(CommitInDoubt, ThatCannotBeReadBackIsSaidToBeUncertainAndTheSameKeyFindsOut) {
  HttpAnswer answer;
  std::thread client = order_up_to_the_commit(answer);
  gate_.refuse(true);
  gate_.cut();
  server_("select pg_advisory_unlock(4711)");
  client.join();
  EXPECT_EQ(answer.status, 504);
  EXPECT_EQ(answer.member("reason"), "outcome-uncertain");
  EXPECT_EQ(answer.member("retryable"), "true");
  EXPECT_EQ(order().status, 503) << "no books, nothing done";
  gate_.refuse(false);
  EXPECT_TRUE(eventually([&] { return order().header("Idempotency-Status") == "replayed"; }));
  EXPECT_EQ(effects(), "1");
}

}  // namespace
}  // namespace einmal::test
