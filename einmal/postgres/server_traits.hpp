#pragma once

#include <string>

#include "einmal/postgres/connection.hpp"

namespace einmal::postgres {

/// What stands between us and the server, found out by trying.
struct ServerTraits {
  bool pooled = false;     ///< Somebody hands sessions around between us and the server.
  bool announces = false;  ///< What one session notifies reaches another that listens.
};

/// Takes up to a second where nothing is announced. `connection` is to the server of `conninfo`.
ServerTraits server_traits(const std::string& conninfo, pg_conn* connection);

/// Errors: incompatible, when this version must not write to the schema that is there.
Result<void> check_schema_version(pg_conn* connection);

}  // namespace einmal::postgres
