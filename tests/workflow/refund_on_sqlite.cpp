#include <sqlite3.h>

#include <stdexcept>

#include "einmal/testing/process.hpp"
#include "workflow/refund_home.hpp"

namespace einmal::test {

namespace {

class Home final : public RefundHome {
 public:
  explicit Home(const std::string& order) {
    run("PRAGMA journal_mode = WAL; CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT NOT NULL,"
        " refunds INTEGER NOT NULL, payment TEXT); INSERT INTO orders VALUES ('" +
        order + "', 'paid', 0, NULL)");
  }
  std::string database() const override { return "sqlite:" + directory_.path().string(); }
  std::string order() const override { return run("SELECT state || ' ' || refunds FROM orders"); }

 private:
  std::string run(const std::string& sql) const {
    sqlite3* opened = nullptr;
    sqlite3_open(directory_.file("orders.db").c_str(), &opened);
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle(opened, sqlite3_close_v2);
    sqlite3_busy_timeout(opened, 5000);
    std::string first;
    const auto keep = [](void* into, int columns, char** values, char**) {
      auto& text = *static_cast<std::string*>(into);
      if (columns > 0 && values[0] && text.empty()) text = values[0];
      return 0;
    };
    if (sqlite3_exec(opened, sql.c_str(), keep, &first, nullptr) != SQLITE_OK)
      throw std::runtime_error(sqlite3_errmsg(opened));
    return first;
  }

  TempDir directory_;
};

}  // namespace

std::unique_ptr<RefundHome> new_refund_home(const std::string& order) {
  return std::make_unique<Home>(order);
}

}  // namespace einmal::test
