#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "einmal/testing/postgres_server.hpp"
#include "support/command.hpp"
#include "support/gateway.hpp"

/// A primary that dies and a replica that takes its place: what survives, by how commits were
/// confirmed. The gateway finds the new primary by itself (target_session_attrs=read-write).

namespace einmal::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class Failover : public GatewayTest {
 protected:
  void open_on(PostgresServer& primary, PostgresServer& replica) {
    url_ = "postgresql:///postgres?host=" + primary.socket_folder() + "," +
           replica.socket_folder() + "&user=postgres&target_session_attrs=read-write";
    open({.store = url_});
  }
  static void migrate(const PostgresServer& server) {
    const auto migrated =
        run_einmal({"migrate", "--store",
                    "postgresql:///postgres?host=" + server.socket_folder() + "&user=postgres"});
    ASSERT_EQ(migrated.status, 0) << migrated.errors;
  }
  /// Bodies of what was executed and acknowledged under these names.
  std::map<std::string, std::string> execute(const std::string& prefix, int n) {
    std::map<std::string, std::string> bodies;
    for (int i = 0; i < n; ++i) {
      const auto key = prefix + std::to_string(i);
      const auto answer = send(order(key));
      EXPECT_EQ(in_words(answer), "201 executed") << key;
      bodies[key] = answer.body;
    }
    return bodies;
  }
  void expect_replays(const std::map<std::string, std::string>& bodies) {
    for (const auto& [key, body] : bodies) {
      HttpAnswer answer;
      EXPECT_TRUE(eventually([&, k = key] {
        answer = send(order(k));
        return answer.status == 201;
      })) << key
          << ": " << in_words(answer);
      EXPECT_EQ(in_words(answer), "201 replayed") << key;
      EXPECT_EQ(answer.body, body) << key;
      EXPECT_EQ(upstream_.effects(key), 1U) << key;
    }
  }

  std::string url_;
};

class SynchronousFailover : public Failover, public ::testing::WithParamInterface<const char*> {};

TEST_P(SynchronousFailover, loses_nothing_that_was_acknowledged) {
  PostgresServer primary;
  migrate(primary);
  PostgresServer replica(primary, "replica");
  primary.restart_with(
      {{"synchronous_standby_names", "replica"}, {"synchronous_commit", GetParam()}});
  open_on(primary, replica);
  const auto before = execute("K", 40);
  primary.kill();
  replica.promote();
  expect_replays(before);
  HttpAnswer answer;
  EXPECT_TRUE(eventually([&] {
    answer = send(order("after"));
    return answer.status == 201;
  })) << in_words(answer);
  EXPECT_EQ(upstream_.effects("after"), 1U);
}

INSTANTIATE_TEST_SUITE_P(SynchronousCommit, SynchronousFailover,
                         ::testing::Values("on", "remote_apply"),
                         [](const auto& each) { return std::string(each.param); });

TEST_F(Failover,
       to_a_replica_that_lags_loses_outcomes_and_the_gateway_that_notices_claims_no_more) {
  PostgresServer primary;
  migrate(primary);
  PostgresServer replica(primary, "replica");
  open_on(primary, replica);
  const auto kept = execute("kept", 5);
  // The replica has these for certain, and none of what comes now.
  ASSERT_TRUE(eventually([&] {
    ChildProcess count({"/usr/bin/psql", "--no-psqlrc", "--tuples-only", "--no-align", "--command",
                        "select count(*) from einmal.record where state = 2", replica.conninfo()});
    count.wait_for_output_end();
    return count.output() == "5\n";
  }));
  replica.stop();
  // More than the 32 values that PostgreSQL logs ahead for a sequence: after fewer lost claims the
  // generations go on above all that were handed out, and there is nothing to notice.
  execute("lost", 100);
  primary.kill();
  replica.start();
  replica.promote();

  // This process has seen higher generations than the new primary hands out.
  HttpAnswer refused;
  EXPECT_TRUE(eventually([&] {
    refused = send(order("new"));
    return refused.status == 503 &&
           gateway_->process().errors().find("generation_regressed") != std::string::npos;
  })) << in_words(refused)
      << gateway_->process().errors();
  EXPECT_EQ(upstream_.effects("new"), 0U);

  // As the alert says: move the counter on, then restart.
  gateway_->kill();
  const auto moved = run_einmal({"migrate", "--after-restore", "--yes", "--store", url_});
  EXPECT_EQ(moved.status, 0) << moved.errors;
  gateway_->restart();
  EXPECT_EQ(in_words(send(order("new"))), "201 executed");
  expect_replays(kept);
  // For what was lost the promise is void: nobody can know that it was executed.
  EXPECT_EQ(in_words(send(order("lost0"))), "201 executed");
  EXPECT_EQ(upstream_.effects("lost0"), 2U);
}

}  // namespace
}  // namespace einmal::test
