#include "einmal/postgres/migrate.hpp"

#include <libpq-fe.h>
#include <openssl/sha.h>

#include <map>

#include "einmal/postgres/connection.hpp"
#include "einmal/postgres/schema_steps.hpp"

namespace einmal {

namespace {

using namespace postgres;

constexpr const char* what = "einmal migrate";

Bytes checksum(std::string_view text) {
  Bytes digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

/// Checksums of the steps that the database has, by version.
Result<std::map<int, Bytes>> applied_steps(pg_conn* connection) {
  std::map<int, Bytes> applied;
  auto known = run(connection, what, "select to_regclass('einmal.migration') is not null");
  if (!known) return pass_on(known);
  if (!Row(known->get(), 0).boolean(0)) return applied;
  auto rows = run(connection, what, "select version, checksum from einmal.migration");
  if (!rows) return pass_on(rows);
  for (int i = 0; i < PQntuples(rows->get()); ++i) {
    const Row row(rows->get(), i);
    applied.emplace(static_cast<int>(row.integer(0)), Bytes(row.bytes(1)));
  }
  return applied;
}

Result<void> apply(pg_conn* connection, const SchemaStep& step) {
  const std::string where = std::string(what) + ": " + std::string(step.name);
  auto done = run_script(connection, where.c_str(), std::string(step.sql));
  if (!done) return pass_on(done);
  Parameters parameters;
  parameters.int4(step.version).text(step.name).bytes(checksum(step.sql));
  auto noted =
      run(connection, where.c_str(),
          "insert into einmal.migration (version, name, checksum) values ($1, $2, $3)", parameters);
  if (!noted) return pass_on(noted);
  return {};
}

Result<PostgresMigration> migrate_in_transaction(pg_conn* connection) {
  auto applied = applied_steps(connection);
  if (!applied) return pass_on(applied);
  PostgresMigration migration;
  migration.from = applied->empty() ? 0 : applied->rbegin()->first;
  if (migration.from > schema_version()) {
    return failure(ErrorCode::incompatible,
                   std::string(what) + ": the database has schema version " +
                       std::to_string(migration.from) + ", this program knows " +
                       std::to_string(schema_version()) + "; use a newer einmal");
  }
  for (const SchemaStep& step : schema_steps()) {
    const auto found = applied->find(step.version);
    if (found == applied->end()) {
      if (auto done = apply(connection, step); !done) return pass_on(done);
      migration.applied.emplace_back(step.name);
    } else if (found->second != checksum(step.sql)) {
      return failure(ErrorCode::incompatible,
                     std::string(what) + ": " + std::string(step.name) +
                         " was applied with another text; it was not written by this build");
    }
  }
  migration.to = schema_version();
  return migration;
}

}  // namespace

Result<PostgresMigration> migrate_postgres(const std::string& conninfo) {
  auto connection = connect(conninfo);
  if (!connection) return pass_on(connection);
  if (PQserverVersion(connection->get()) < 140000)
    return failure(ErrorCode::unsupported,
                   std::string(what) + ": PostgreSQL 14 or newer is needed");
  // 0x65696e6d: "einm". One migration at a time; the lock goes with the transaction.
  auto begun = run_script(connection->get(), what,
                          "begin isolation level read committed; set local search_path = "
                          "pg_catalog; select pg_advisory_xact_lock(x'65696e6d'::bigint)");
  if (!begun) return pass_on(begun);
  auto migration = migrate_in_transaction(connection->get());
  if (!migration) return migration;
  auto committed = run_script(connection->get(), what, "commit");
  if (!committed && PQstatus(connection->get()) != CONNECTION_OK) {
    return failure(ErrorCode::in_doubt,
                   std::string(what) + ": the connection was lost at COMMIT; run it again");
  }
  if (!committed) return pass_on(committed);
  if (std::string_view(PQcmdStatus(committed->get())) != "COMMIT")
    return failure(ErrorCode::unavailable, std::string(what) + ": the server rolled back");
  return migration;
}

}  // namespace einmal
