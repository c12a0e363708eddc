#include "einmal/postgres/migrate.hpp"

#include <thread>

#include "einmal/postgres/pg_fixture.hpp"
#include "einmal/postgres/schema_steps.hpp"

namespace einmal {
namespace {

using test::Client;
using test::Database;

TEST(Migrate, MakesTheSchemaOnceAndThenFindsNothingToDo) {
  Database database(false);
  const auto first = migrate_postgres(database.conninfo());
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->from, 0);
  EXPECT_EQ(first->to, postgres::schema_version());
  EXPECT_EQ(first->applied.size(), postgres::schema_steps().size());
  const auto second = migrate_postgres(database.conninfo());
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->from, postgres::schema_version());
  EXPECT_TRUE(second->applied.empty());
}

TEST(Migrate, LetsManyAtOnceMakeOneSchema) {
  Database database(false);
  std::vector<std::thread> threads;
  std::atomic<std::size_t> applied = 0, failed = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto migrated = migrate_postgres(database.conninfo());
      migrated ? applied += migrated->applied.size() : ++failed;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(applied, postgres::schema_steps().size());
}

TEST(Migrate, LeavesNothingWhenAStepFails) {
  Database database(false);
  Client client(database.conninfo());
  client("create schema einmal");  // in the way of the first step
  const auto migrated = migrate_postgres(database.conninfo());
  ASSERT_FALSE(migrated);
  EXPECT_EQ(client("select count(*) from pg_class where relnamespace = 'einmal'::regnamespace"),
            "0");
}

TEST(Migrate, RefusesANewerSchemaAndAStepWithAnotherText) {
  Database database;
  Client client(database.conninfo());
  client("update einmal.migration set checksum = sha256('other') where version = 2");
  auto migrated = migrate_postgres(database.conninfo());
  ASSERT_FALSE(migrated);
  EXPECT_EQ(migrated.error().code, ErrorCode::incompatible);
  client("insert into einmal.migration (version, name, checksum) values (9999, 'later.sql', '')");
  migrated = migrate_postgres(database.conninfo());
  ASSERT_FALSE(migrated);
  EXPECT_EQ(migrated.error().code, ErrorCode::incompatible);
}

TEST(Migrate, SaysThatTheServerIsNotThere) {
  const auto migrated = migrate_postgres("host=/nonexistent port=1 dbname=x");
  ASSERT_FALSE(migrated);
  EXPECT_EQ(migrated.error().code, ErrorCode::unavailable);
}

TEST(Migrate, MakesRolesThatCanDoTheirWorkAndNothingElse) {
  Database database;
  Client admin(database.conninfo());
  admin(
      "create table public.orders (id int); do $$ begin"
      " if not exists (select from pg_roles where rolname = 'shop') then create role shop login in "
      "role einmal_app;"
      " create role gate login in role einmal_gateway; create role op login in role "
      "einmal_operator;"
      " end if; end $$");
  Client shop(database.conninfo("shop")), gate(database.conninfo("gate")),
      op(database.conninfo("op"));
  const std::string claim =
      "select decision from einmal.claim('a', 'o', 'k', sha256('x'), lease => '1 h')";
  EXPECT_EQ(shop(claim), "execute");
  EXPECT_EQ(op(claim), "in_progress");
  EXPECT_TRUE(gate(claim).starts_with("ERROR 42501"));
  EXPECT_EQ(gate("select count(*) from einmal.stats(gen_random_uuid(), 1)"), "1");
  EXPECT_TRUE(gate("select * from public.orders").starts_with("ERROR 42501"));
  EXPECT_TRUE(op("select * from einmal.records").starts_with("app|a|o|k|processing"));
  for (Client* client : {&shop, &gate, &op}) {
    for (const char* table : {"record", "audit", "profile", "store", "clock_look", "generation"}) {
      EXPECT_TRUE(
          (*client)("select * from einmal." + std::string(table)).starts_with("ERROR 42501"));
    }
    EXPECT_TRUE((*client)("delete from einmal.record").starts_with("ERROR 42501"));
    EXPECT_TRUE((*client)("select einmal._last_generation()").starts_with("ERROR 42501"));
  }
  for (const char* statement :
       {"select einmal.forget('a', 'o', 'k', 1, 'because')", "select einmal.accept_time()",
        "select einmal.resolve('a', 'o', 'k', 1, 'freed', 'because')",
        "select einmal.advance_generations()"}) {
    EXPECT_TRUE(shop(statement).starts_with("ERROR 42501")) << statement;
    EXPECT_TRUE(gate(statement).starts_with("ERROR 42501")) << statement;
    EXPECT_FALSE(op(statement).starts_with("ERROR")) << statement;
  }
}

}  // namespace
}  // namespace einmal
