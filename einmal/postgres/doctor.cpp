#include "einmal/postgres/doctor.hpp"

#include <libpq-fe.h>

#include "einmal/postgres/connection.hpp"
#include "einmal/postgres/server_traits.hpp"

namespace einmal {

namespace {

using namespace postgres;
using Level = PostgresFinding::Level;

class Examination {
 public:
  Examination(pg_conn* connection, const std::string& conninfo)
      : connection_(connection), conninfo_(conninfo) {}

  std::vector<PostgresFinding> findings() {
    durability();
    replication();
    sessions();
    schema();
    upkeep();
    return std::move(findings_);
  }

 private:
  /// The first value as text; empty when the question is refused.
  std::string ask(const char* sql) {
    auto rows =
        run(connection_, "einmal doctor", (std::string("select (") + sql + ")::text").c_str());
    if (!rows || PQntuples(rows->get()) == 0 || Row(rows->get(), 0).is_null(0)) return "";
    return Bytes(Row(rows->get(), 0).bytes(0));
  }
  std::string setting(const std::string& name) {
    return ask(("current_setting('" + name + "', true)").c_str());
  }
  void note(Level level, std::string name, std::string value, std::string meaning) {
    findings_.push_back({level, std::move(name), std::move(value), std::move(meaning)});
  }

  void durability() {
    if (setting("fsync") == "on")
      note(Level::good, "fsync", "on", "what was confirmed is on the disk");
    else
      note(
          Level::broken, "fsync", "off",
          "a crash of the machine may lose what was confirmed and damage the database: keys may be "
          "executed twice");
    if (setting("full_page_writes") == "on")
      note(Level::good, "full_page_writes", "on", "a page that was half written is repaired");
    else
      note(Level::broken, "full_page_writes", "off",
           "a crash of the machine may leave half-written pages: records may be lost or damaged, "
           "unless the storage writes whole pages by itself");
    const std::string commit = setting("synchronous_commit");
    if (commit == "on" || commit == "remote_apply")
      note(Level::good, "synchronous_commit", commit, "a commit is confirmed when it is durable");
    else
      note(Level::attention, "synchronous_commit", commit,
           "einmal raises it to on for its own transactions; what the service commits without "
           "einmal may be lost after it was confirmed");
  }

  void replication() {
    if (ask("pg_is_in_recovery()") == "true") {
      note(Level::broken, "replication", "replica",
           "this server only reads: nothing can be claimed here; name the primary");
      return;
    }
    const std::string replicas = ask("select count(*) from pg_stat_replication");
    const std::string waits_for = setting("synchronous_standby_names");
    if (!waits_for.empty())
      note(Level::good, "synchronous_standby_names", waits_for,
           "a commit waits for a replica, so a failover to it loses nothing that was confirmed");
    else if (replicas != "0" && !replicas.empty())
      note(
          Level::attention, "synchronous_standby_names", "none, " + replicas + " replicas",
          "a failover may lose the last confirmed commits, and for those keys the promise is void; "
          "run einmal migrate --after-restore before gateways use the new primary");
    else
      note(Level::good, "synchronous_standby_names", "none, no replicas",
           "one server: what it confirmed it keeps, as long as its disk does");
  }

  void sessions() {
    const std::string isolation = setting("default_transaction_isolation");
    if (isolation == "read committed")
      note(Level::good, "default_transaction_isolation", isolation,
           "the loser of a race is given the replay");
    else
      note(
          Level::attention, "default_transaction_isolation", isolation,
          "claim must be the first statement of a transaction, and a caller of the SQL functions "
          "must begin again when told in_progress with retry_after 0 or when a statement or COMMIT "
          "fails with SQLSTATE 40001; run_in_transaction and gateways do so by themselves");
    const ServerTraits traits = server_traits(conninfo_, connection_);
    if (traits.pooled)
      note(Level::attention, "pooler", "shares sessions",
           "statements are planned anew each time; sessions of applications must be made with "
           "prepare = false");
    else
      note(Level::good, "pooler", "none", "connections are sessions");
    if (traits.announces)
      note(Level::good, "notifications", "delivered", "a waiter learns of a completion at once");
    else
      note(Level::attention, "notifications", "not delivered",
           "LISTEN is accepted but nothing arrives: waiters learn of a completion elsewhere by "
           "polling, within 50 ms");
  }

  void schema() {
    const auto version = check_schema_version(connection_);
    if (version)
      note(Level::good, "schema", ask("select version from einmal.version()"), "fits this program");
    else
      note(Level::broken, "schema", "unusable", version.error().message);
    if (!version) return;
    const bool gateway =
        ask("has_function_privilege('einmal.claims(uuid, bigint, bytea[], bytea[], bytea[], "
            "bytea[], bytea[], bytea[], bytea[], interval[], smallint[], interval[], smallint[], "
            "interval[], uuid[], uuid[])', 'execute')") == "true";
    const bool tables = ask("has_table_privilege('einmal.record', 'update')") == "true";
    if (!gateway)
      note(Level::attention, "rights", "no gateway",
           "this role cannot serve a gateway; grant it einmal_gateway");
    else if (tables)
      note(
          Level::attention, "rights", "more than needed",
          "this role may write the tables behind the functions' back; a gateway needs no more than "
          "einmal_gateway");
    else
      note(Level::good, "rights", "functions only",
           "this role can do a gateway's work and no more");
    if (ask("exists (select from einmal.store_state(gen_random_uuid(), 0) where expiry_paused)") ==
        "true")
      note(Level::attention, "clock", "jumped ahead",
           "expiry and sweep pause until the server's clock is right again or an operator accepts "
           "it "
           "with einmal.accept_time()");
  }

  void upkeep() {
    const std::string locks =
        ask("current_setting('max_locks_per_transaction')::bigint * "
            "(current_setting('max_connections')::bigint + "
            "current_setting('max_prepared_transactions')::bigint)");
    // A batch holds up to 128 advisory locks; each gateway runs two at a time.
    if (std::atoll(locks.c_str()) >= 3000)
      note(Level::good, "max_locks_per_transaction", locks + " locks in all",
           "enough for the batches of " + std::to_string(std::atoll(locks.c_str()) / 256) +
               " gateways");
    else
      note(Level::attention, "max_locks_per_transaction", locks + " locks in all",
           "each gateway may hold 256 advisory locks: raise it, or give the store a smaller "
           "max_batch");
    if (setting("autovacuum") == "on")
      note(Level::good, "autovacuum", "on", "space of swept records is used again");
    else
      note(Level::attention, "autovacuum", "off", "the tables grow although they are swept");
  }

  pg_conn* connection_;
  const std::string& conninfo_;
  std::vector<PostgresFinding> findings_;
};

}  // namespace

Result<std::vector<PostgresFinding>> doctor_postgres(const std::string& conninfo) {
  auto connection = connect(conninfo);
  if (!connection) return pass_on(connection);
  return Examination(connection->get(), conninfo).findings();
}

}  // namespace einmal
