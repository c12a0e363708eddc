#pragma once

#include "einmal/sqlite_file/connection.hpp"

namespace einmal::sqlite_file {

/// Makes the schema of the connection's kind in an empty file or brings an older one up to date, in
/// one transaction; several processes may do so at once. Returns the version found or made; a
/// version newer than this build is returned as it is, and the caller decides (`newer_version`).
/// Errors: those of Connection.
Result<int> ensure_schema(Connection& connection);

/// The refusal of a file that a newer build has written.
Error newer_version(const Connection& connection, int found);

}  // namespace einmal::sqlite_file
