#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "einmal/sqlite_file/connection.hpp"
#include "einmal/sqlite_file/statement.hpp"
#include "einmal/store/store.hpp"

namespace einmal::sqlite {

/// Fingerprint profiles, numbered: a record holds the number. Rows are added, never changed (but
/// for a definition that comes later) and never removed, so what was read stays true.
class ProfileTable {
 public:
  static Result<ProfileTable> prepare(sqlite_file::Connection& connection);

  Result<Digest> id_of(std::int64_t number);
  /// Adds the profile if it is not there. Inside a write transaction.
  Result<std::int64_t> number_of(const Digest& id);
  /// Keeps the definition if none is kept yet. Inside a write transaction.
  Result<void> keep(const Profile& profile);
  Result<std::optional<Bytes>> definition(const Digest& id);

  /// After a rollback: what was added may be gone.
  void forget_additions();

 private:
  struct DigestHash {
    std::size_t operator()(const Digest& digest) const noexcept;
  };
  explicit ProfileTable(sqlite_file::Connection& connection) : connection_(&connection) {}

  sqlite_file::Connection* connection_;
  sqlite_file::Statement id_of_, find_, add_, keep_;
  std::unordered_map<std::int64_t, Digest> ids_;
  std::unordered_map<Digest, std::int64_t, DigestHash> numbers_;
  std::unordered_map<Digest, bool, DigestHash> kept_;
};

}  // namespace einmal::sqlite
