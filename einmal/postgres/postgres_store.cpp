#include "einmal/postgres/postgres_store.hpp"

#include "einmal/postgres/connection.hpp"
#include "einmal/postgres/dispatcher.hpp"
#include "einmal/postgres/server_traits.hpp"
#include "einmal/store/check_request.hpp"

namespace einmal {

namespace {

using namespace postgres;

class PostgresStore final : public Store {
 public:
  PostgresStore(const std::string& conninfo, const PostgresStoreOptions& options,
                ServerTraits traits, Bytes digest_secret, const Clock& clock, Random& random)
      : capabilities_{"postgres", true, true, true, true, traits.announces, true},
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

}  // namespace

Result<std::unique_ptr<Store>> open_postgres_store(const std::string& conninfo,
                                                   const PostgresStoreOptions& options,
                                                   const Clock& clock, Random& random) {
  auto connection = connect(conninfo);
  if (!connection) return pass_on(connection);
  if (auto checked = check_schema_version(connection->get()); !checked) return pass_on(checked);
  Parameters parameters;
  parameters.uuid(clock.boot_id().bytes()).int8(clock.boot_now().time_since_epoch().count());
  auto state = run(connection->get(), "postgres",
                   "select digest_secret from einmal.store_state($1, $2)", parameters);
  if (!state) return pass_on(state);
  const ServerTraits traits = server_traits(conninfo, connection->get());
  return std::make_unique<PostgresStore>(conninfo, options, traits,
                                         Bytes(Row(state->get(), 0).bytes(0)), clock, random);
}

}  // namespace einmal
