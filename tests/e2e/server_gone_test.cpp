#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "einmal/testing/postgres_server.hpp"
#include "support/command.hpp"
#include "support/gateway.hpp"

/// A gateway whose PostgreSQL server is gone for a while.

namespace einmal::test {
namespace {

class ServerGone : public GatewayTest {
 protected:
  ServerGone() {
    url_ = "postgresql:///postgres?host=" + server_.socket_folder() + "&user=postgres";
    const auto migrated = run_einmal({"migrate", "--store", url_});
    EXPECT_EQ(migrated.status, 0) << migrated.errors;
  }

  PostgresServer server_{{.fsync = true, .settings = {}}};
  std::string url_;
};

TEST_F(ServerGone, killed_is_503_within_the_deadline_and_nothing_is_forwarded_until_it_is_back) {
  open({.store = url_});
  upstream_.always(Play().answer(201, "{\"id\":\"one\"}"));
  EXPECT_EQ(in_words(send(order("before"))), "201 executed");
  server_.kill();
  for (const char* key : {"before", "while"}) {
    const auto asked = std::chrono::steady_clock::now();
    const auto refused = send(order(key));
    EXPECT_EQ(refused.status, 503) << in_words(refused);
    EXPECT_EQ(reason_of(refused), "store-unavailable");
    EXPECT_NE(refused.header("Retry-After"), "");
    EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(10));
  }
  EXPECT_EQ(upstream_.begun(), 1u);
  server_.start();
  EXPECT_TRUE(eventually([&] { return send(order("while")).status == 201; }));
  EXPECT_EQ(upstream_.effects("while"), 1u);
  EXPECT_EQ(in_words(send(order("before"))), "201 replayed");
  EXPECT_EQ(upstream_.begun(), 2u);
}

}  // namespace
}  // namespace einmal::test
