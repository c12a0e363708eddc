#pragma once

#include <string>
#include <vector>

#include "einmal/base/error.hpp"

namespace einmal {

/// What a migration did.
struct PostgresMigration {
  int from = 0;                      ///< Schema version found; 0: none.
  int to = 0;                        ///< Schema version now.
  std::vector<std::string> applied;  ///< Names of the steps, in order.
};

/// Creates the schema `einmal` in the database of `conninfo` (a libpq connection string or URI), or
/// brings it to the version of this build: forward only, everything or nothing, one migration at a
/// time. Older gateways may run meanwhile. The role must own the database or the schema; roles
/// einmal_app, einmal_gateway and einmal_operator are made if it may create roles.
///
/// Errors: unavailable (nothing was changed), in_doubt (the connection was lost at COMMIT: run it
/// again), unsupported (a server before PostgreSQL 14), incompatible (a newer schema, or a step
/// that was applied with another text), invalid (the connection string).
Result<PostgresMigration> migrate_postgres(const std::string& conninfo);

}  // namespace einmal
