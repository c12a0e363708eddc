#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "einmal/testing/postgres_server.hpp"
#include "support/command.hpp"

/// `einmal doctor` before a real PostgreSQL server: each finding is printed, and one of them is
/// enough for its exit code.

namespace einmal::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string url_of(const PostgresServer& server) {
  return "postgresql:///postgres?host=" + server.socket_folder() + "&user=postgres";
}

TEST(ServerDoctor, says_what_the_settings_of_the_server_cost) {
  PostgresServer server{{.fsync = true, .settings = {}}};
  const auto missing = run_einmal({"doctor", "--store", url_of(server)});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.output + missing.errors, HasSubstr("einmal migrate"));

  ASSERT_EQ(run_einmal({"migrate", "--store", url_of(server)}).status, 0);
  const auto well = run_einmal({"doctor", "--store", url_of(server)});
  EXPECT_THAT(well.output, HasSubstr("ok    fsync = on"));
  EXPECT_THAT(well.output, Not(HasSubstr("BAD")));

  server.restart_with({{"fsync", "off"}});
  const auto ill = run_einmal({"doctor", "--store", url_of(server)});
  EXPECT_EQ(ill.status, 1);
  EXPECT_THAT(ill.output, HasSubstr("BAD   fsync = off"));
  EXPECT_THAT(ill.output, HasSubstr("executed twice"));
}

TEST(ServerDoctor, says_that_no_server_answers) {
  const auto nobody = run_einmal({"doctor", "--store", "postgresql:///a?host=/nowhere"});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_THAT(nobody.errors, HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace einmal::test
