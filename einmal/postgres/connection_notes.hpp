#pragma once

#include <set>
#include <string>

struct pg_conn;

namespace einmal::postgres {

/// What we remember about a connection that is not ours, for as long as it lives.
struct ConnectionNotes {
  std::set<std::string> prepared;  ///< Names; empty again after PQreset.
  bool conflict = false;           ///< A statement was told of a conflict (SQLSTATE 40xxx).
};

/// The notes of `connection`, made at the first call. Null when libpq has no memory for them.
ConnectionNotes* notes_of(pg_conn* connection);

}  // namespace einmal::postgres
