#include "einmal/postgres/postgres_store.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <chrono>

#include "einmal/postgres/connection.hpp"
#include "einmal/postgres/dispatcher.hpp"
#include "einmal/postgres/schema_steps.hpp"
#include "einmal/store/check_request.hpp"

namespace einmal {

namespace {

using namespace postgres;

class PostgresStore final : public Store {
 public:
  PostgresStore(const std::string& conninfo, const PostgresStoreOptions& options,
                ServerTraits traits, Bytes digest_secret, const Clock& clock, Random& random)
      : capabilities_{"postgres", true, true, true, true, traits.announces},
        digest_secret_(std::move(digest_secret)),
        dispatcher_(conninfo, options, traits, clock, random) {}

  const Capabilities& capabilities() const override { return capabilities_; }
  const Bytes& digest_secret() const override { return digest_secret_; }

  void submit(Command& command) override {
    auto checked = check_request(command.request());
    const auto* list = std::get_if<request::List>(&command.request());
    if (checked && list && !list->after.empty() && list->after.size() != 16)
      checked = failure(ErrorCode::invalid, "list: `after` is not the `next` of a page");
    if (!checked) return command.completed(pass_on(checked));
    dispatcher_.submit(command);
  }
  void on_foreign_change(std::function<void()> listener) override {
    dispatcher_.on_foreign_change(std::move(listener));
  }
  void await_foreign_changes(bool wanted) override { dispatcher_.await_foreign_changes(wanted); }
  void observe(StoreObserver* observer) override { dispatcher_.observe(observer); }

 private:
  const Capabilities capabilities_;
  const Bytes digest_secret_;
  Dispatcher dispatcher_;
};

/// Whether this version may write the schema that is there.
Result<void> check_version(pg_conn* connection) {
  auto rows = run(connection, "postgres", "select version, min_writer from einmal.version()");
  if (!rows) return pass_on(rows);
  const Row row(rows->get(), 0);
  if (row.integer(0) < schema_version())
    return failure(ErrorCode::incompatible,
                   "postgres: the schema has version " + std::to_string(row.integer(0)) +
                       ", this program needs " + std::to_string(schema_version()) +
                       "; run einmal migrate");
  if (row.integer(1) > schema_version())
    return failure(ErrorCode::incompatible, "postgres: only programs that know schema version " +
                                                std::to_string(row.integer(1)) +
                                                " may write here; use a newer einmal");
  return {};
}

/// A pooler answers with a backend id of its own at connecting and another's at asking.
bool is_pooled(pg_conn* connection) {
  auto rows = run(connection, "postgres", "select pg_backend_pid()");
  return rows && Row(rows->get(), 0).integer(0) != PQbackendPID(connection);
}

/// Whether what one session notifies reaches another that listens: a pooler accepts LISTEN and
/// delivers nothing.
bool proves_listen(const std::string& conninfo, pg_conn* sender) {
  auto listener = connect(conninfo);
  if (!listener || !run_script(listener->get(), "postgres", "listen einmal_proof")) return false;
  if (!run_script(sender, "postgres", "notify einmal_proof")) return false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) {
    pollfd descriptor{PQsocket(listener->get()), POLLIN, 0};
    poll(&descriptor, 1, 100);
    if (PQconsumeInput(listener->get()) != 1) return false;
    if (PGnotify* notify = PQnotifies(listener->get())) {
      PQfreemem(notify);
      return true;
    }
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Store>> open_postgres_store(const std::string& conninfo,
                                                   const PostgresStoreOptions& options,
                                                   const Clock& clock, Random& random) {
  auto connection = connect(conninfo);
  if (!connection) return pass_on(connection);
  if (auto checked = check_version(connection->get()); !checked) return pass_on(checked);
  Parameters parameters;
  parameters.uuid(clock.boot_id().bytes()).int8(clock.boot_now().time_since_epoch().count());
  auto state = run(connection->get(), "postgres",
                   "select digest_secret from einmal.store_state($1, $2)", parameters);
  if (!state) return pass_on(state);
  ServerTraits traits;
  traits.pooled = is_pooled(connection->get());
  traits.announces = proves_listen(conninfo, connection->get());
  return std::make_unique<PostgresStore>(conninfo, options, traits,
                                         Bytes(Row(state->get(), 0).bytes(0)), clock, random);
}

}  // namespace einmal
