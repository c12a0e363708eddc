#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "einmal/base/error.hpp"

namespace einmal {

/// One thing that was looked at, and what it means for the promise in plain words.
struct PostgresFinding {
  enum class Level : std::uint8_t {
    good,
    attention,  ///< The promise holds, at a cost or with a condition that is said.
    broken,     ///< The promise does not hold as it stands.
  };
  Level level = Level::good;
  std::string setting;  ///< The server's name for it, or a name of ours.
  std::string value;
  std::string meaning;  ///< One sentence.
};

/// Reads what decides whether the database of `conninfo` can keep the promise: fsync,
/// full_page_writes, synchronous_commit, replication, isolation, poolers, notifications, clock,
/// schema version, rights, lock table, vacuum. Changes nothing. Takes up to a second or two.
///
/// Errors: unavailable, invalid (the connection string).
Result<std::vector<PostgresFinding>> doctor_postgres(const std::string& conninfo);

}  // namespace einmal
