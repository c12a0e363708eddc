#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/postgres/doctor.hpp"
#include "einmal/store/store.hpp"
#include "shop/connection.hpp"

namespace einmal::programs {

struct StoreSettings {
  bool create = true;  ///< Make the file or schema if it is not there.
  Duration audit_retention = std::chrono::hours(24 * 400);
};

/// Opens the store that a URL names: `sqlite:PATH`, whose schema is made and kept up to date on the
/// way, or `postgresql://...` (libpq), whose schema `migrate_store` makes. Errors: invalid for any
/// other URL; those of the driver otherwise. Clock and Random must outlive the store.
Result<std::unique_ptr<Store>> open_store(const std::string& url, const StoreSettings& settings,
                                          const Clock& clock, Random& random);

/// Makes a server's schema, or brings it up to date. Nothing to do for a file. Errors: those of
/// migrate_postgres.
Result<void> migrate_store(const std::string& url);

/// What a server's settings do to the promise; nothing to say of a file. Errors: those of
/// doctor_postgres.
Result<std::vector<PostgresFinding>> examine_server(const std::string& url);

/// Where the demo shop's books are: a file's path, `sqlite:PATH` or `postgresql://...`. Errors:
/// those of the place.
Result<shop::Place> open_ledger(const std::string& where, shop::Keeping keeping);

/// Whether there is something to open: false only for a file that does not exist.
bool store_exists(const std::string& url);

/// The URL without credentials, for people to read.
std::string shown_url(std::string_view url);

}  // namespace einmal::programs
