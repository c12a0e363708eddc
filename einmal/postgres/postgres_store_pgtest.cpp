#include "einmal/postgres/postgres_store.hpp"

#include "einmal/postgres/pg_fixture.hpp"
#include "einmal/testing/store_contract.hpp"

namespace einmal::testing {
namespace {

/// A database whose clock is the virtual one: einmal.now() reads a table that the clock writes.
class PostgresHome final : public StoreHome {
 public:
  explicit PostgresHome(VirtualClock& clock) : clock_(clock), client_(database_.conninfo()) {
    client_(
        "create table public.clock (at timestamptz not null); insert into public.clock values "
        "(now());"
        "create or replace function einmal.now() returns timestamptz language plpgsql volatile as "
        "$$"
        " begin return (select at from public.clock); end $$");
    // The database is a copy; a store that was migrated by itself draws a secret of its own.
    client_("update einmal.store set digest_secret = sha256(uuid_send(gen_random_uuid()))");
    set_clock();
    clock_.listen([this] { set_clock(); });
  }
  ~PostgresHome() override { clock_.listen({}); }

  std::unique_ptr<Store> open() override {
    auto store = open_postgres_store(database_.conninfo(), {}, clock_, random_);
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }

 private:
  void set_clock() {
    const auto micros = clock_.wall_now().time_since_epoch().count();
    client_("update public.clock set at = 'epoch'::timestamptz + make_interval(secs => " +
            std::to_string(micros / 1'000'000) + ") + " + std::to_string(micros % 1'000'000) +
            " * interval '1 microsecond'");
  }

  VirtualClock& clock_;
  SystemRandom random_;
  test::Database database_;
  test::Client client_;
};

StoreFactory postgres_factory() {
  StoreFactory factory;
  factory.name = "Postgres";
  factory.make = [](VirtualClock& clock) { return std::make_unique<PostgresHome>(clock); };
  factory.several_at_once = true;
  factory.tells_of_foreign_changes = true;
  factory.leases_on_wall_clock = true;
  return factory;
}

INSTANTIATE_TEST_SUITE_P(Postgres, StoreContract, ::testing::Values(postgres_factory()),
                         StoreFactoryName());
INSTANTIATE_TEST_SUITE_P(Postgres, RandomCommands, ::testing::Values(postgres_factory()),
                         StoreFactoryName());

}  // namespace
}  // namespace einmal::testing
