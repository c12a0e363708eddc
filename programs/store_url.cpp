#include "store_url.hpp"

#include <filesystem>

#include "einmal/postgres/migrate.hpp"
#include "einmal/postgres/postgres_store.hpp"
#include "einmal/sqlite/sqlite_store.hpp"

namespace einmal::programs {

namespace {
constexpr std::string_view sqlite = "sqlite:";

bool names_postgres(std::string_view url) {
  return url.starts_with("postgresql://") || url.starts_with("postgres://");
}
}  // namespace

Result<std::unique_ptr<Store>> open_store(const std::string& url, const StoreSettings& settings,
                                          const Clock& clock, Random& random) {
  if (url.starts_with(sqlite) && url.size() > sqlite.size()) {
    SqliteOptions options;
    options.create = settings.create;
    options.audit_retention = settings.audit_retention;
    return open_sqlite_store(url.substr(sqlite.size()), options, clock, random);
  }
  if (names_postgres(url)) {
    PostgresStoreOptions options;
    options.audit_retention = settings.audit_retention;
    return open_postgres_store(url, options, clock, random);
  }
  return failure(ErrorCode::invalid,
                 "store: '" + shown_url(url) + "' is neither sqlite:PATH nor postgresql://...");
}

Result<void> migrate_store(const std::string& url) {
  if (!names_postgres(url)) return {};
  const auto done = migrate_postgres(url);
  if (!done) return pass_on(done);
  return {};
}

Result<std::vector<PostgresFinding>> examine_server(const std::string& url) {
  if (!names_postgres(url)) return std::vector<PostgresFinding>{};
  return doctor_postgres(url);
}

Result<shop::Place> open_ledger(const std::string& where, shop::Keeping keeping) {
  if (names_postgres(where)) return shop::postgres_place(where, keeping);
  return shop::sqlite_place(where.starts_with(sqlite) ? where.substr(sqlite.size()) : where,
                            keeping);
}

bool store_exists(const std::string& url) {
  return !url.starts_with(sqlite) || std::filesystem::exists(url.substr(sqlite.size()));
}

std::string shown_url(std::string_view url) {
  const auto scheme = url.find("://");
  const auto at = url.rfind('@');
  if (scheme == std::string_view::npos || at == std::string_view::npos || at < scheme)
    return std::string(url);
  return std::string(url.substr(0, scheme + 3)) + "..." + std::string(url.substr(at));
}

}  // namespace einmal::programs
