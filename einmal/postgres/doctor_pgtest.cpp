#include "einmal/postgres/doctor.hpp"

#include "einmal/postgres/pg_fixture.hpp"

/// Each setting is really changed on a server, and what the doctor says is read.
namespace einmal {
namespace {

using test::Client;
using test::Database;
using Level = PostgresFinding::Level;

PostgresFinding finding(const std::string& conninfo, const std::string& setting) {
  const auto findings = doctor_postgres(conninfo);
  if (!findings) throw std::runtime_error(findings.error().message);
  for (const PostgresFinding& each : *findings) {
    if (each.setting == setting) return each;
  }
  return {Level::good, setting, "not looked at", ""};
}

TEST(Doctor, FindsNothingWrongWithAServerAsItComesAndARoleOfAGateway) {
  test::PostgresServer server({.fsync = true, .settings = {}});
  Database database(true, server);
  Client(database.conninfo())("create role gate login in role einmal_gateway");
  const auto findings = doctor_postgres(database.conninfo("gate"));
  ASSERT_TRUE(findings) << findings.error().message;
  EXPECT_GE(findings->size(), 11u);
  for (const PostgresFinding& each : *findings)
    EXPECT_EQ(each.level, Level::good)
        << each.setting << " = " << each.value << ": " << each.meaning;
}

TEST(Doctor, SaysWhatEachSettingOfTheServerCosts) {
  test::PostgresServer server({.fsync = false,
                               .settings = {{"full_page_writes", "off"},
                                            {"autovacuum", "off"},
                                            {"max_locks_per_transaction", "10"}}});
  Database database(true, server);
  const auto expect = [&](const std::string& setting, Level level, const std::string& part) {
    const PostgresFinding found = finding(database.conninfo(), setting);
    EXPECT_EQ(found.level, level) << setting;
    EXPECT_NE(found.meaning.find(part), std::string::npos) << found.meaning;
  };
  expect("fsync", Level::broken, "keys may be executed twice");
  expect("full_page_writes", Level::broken, "half-written pages");
  expect("autovacuum", Level::attention, "the tables grow");
  expect("max_locks_per_transaction", Level::attention, "smaller max_batch");
  expect("rights", Level::attention, "behind the functions' back");
}

TEST(Doctor, SaysWhatEachSettingOfADatabaseCosts) {
  Database database;
  Client admin(database.conninfo());
  const auto set = [&](const std::string& setting) {
    admin("alter database " + database.name() + " set " + setting);
  };
  for (const std::string weak : {"off", "local", "remote_write"}) {
    set("synchronous_commit = " + weak);
    const PostgresFinding found = finding(database.conninfo(), "synchronous_commit");
    EXPECT_EQ(found.level, Level::attention);
    EXPECT_EQ(found.value, weak);
    EXPECT_NE(found.meaning.find("einmal raises it to on"), std::string::npos);
  }
  set("synchronous_commit = remote_apply");
  EXPECT_EQ(finding(database.conninfo(), "synchronous_commit").level, Level::good);
  for (const std::string level : {"repeatable read", "serializable"}) {
    set("default_transaction_isolation = '" + level + "'");
    const PostgresFinding found = finding(database.conninfo(), "default_transaction_isolation");
    EXPECT_EQ(found.level, Level::attention);
    EXPECT_NE(found.meaning.find("40001"), std::string::npos);
  }
}

TEST(Doctor, SaysWhatIsWrongWithTheSchemaTheRightsAndTheClock) {
  Database without(false);
  EXPECT_EQ(finding(without.conninfo(), "schema").level, Level::broken);
  EXPECT_NE(finding(without.conninfo(), "schema").meaning.find("run einmal migrate"),
            std::string::npos);
  Database database;
  Client admin(database.conninfo());
  admin(
      "do $$ begin if not exists (select from pg_roles where rolname = 'app_only') then"
      " create role app_only login in role einmal_app; end if; end $$");
  EXPECT_NE(
      finding(database.conninfo("app_only"), "rights").meaning.find("grant it einmal_gateway"),
      std::string::npos);
  EXPECT_EQ(finding(database.conninfo(), "clock").value, "not looked at");
  admin("insert into einmal.clock_look values (gen_random_uuid(), now(), 0, true)");
  EXPECT_NE(finding(database.conninfo(), "clock").meaning.find("accept_time"), std::string::npos);
}

TEST(Doctor, SaysThatTheServerIsNotThere) {
  EXPECT_EQ(doctor_postgres("host=/nonexistent dbname=x").error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace einmal
