#include <mutex>

#include "einmal/postgres/pg_fixture.hpp"
#include "workflow/refund_home.hpp"

namespace einmal::test {

namespace {

std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

class Home final : public RefundHome {
 public:
  explicit Home(const std::string& order) {
    Client client(database_.conninfo());
    client(
        "create table orders (id text primary key, state text not null, refunds int not null,"
        " payment text)");
    client("insert into orders values ('" + order + "', 'paid', 0, null)");
  }
  std::string database() const override { return database_.conninfo(); }
  std::string order() const override {
    Client client(database_.conninfo());
    return client("select state || ' ' || refunds from orders");
  }

 private:
  Database database_;
};

}  // namespace

std::unique_ptr<RefundHome> new_refund_home(const std::string& order) {
  const std::lock_guard lock(one_at_a_time());
  return std::make_unique<Home>(order);
}

}  // namespace einmal::test
