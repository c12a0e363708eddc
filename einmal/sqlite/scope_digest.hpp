#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "einmal/base/bytes.hpp"
#include "einmal/core/scope.hpp"

namespace einmal::sqlite {

/// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed 64-bit hash whose collisions nobody can make
/// who does not know the key.
std::uint64_t siphash(const std::array<std::uint64_t, 2>& key, BytesView bytes);

/// Turns scopes into the integers of the scope index. An index, never an identity: equal digests
/// are told apart by the parts. The upper 24 bits depend on (namespace, caller) alone, so the
/// records of one caller are one range of the index; the lower 40 on all four parts.
class ScopeDigests {
 public:
  /// `secret`: 16 random bytes kept in the store. `bits`: how many of the lower 40 are used; fewer
  /// only in tests that need collisions.
  explicit ScopeDigests(BytesView secret, int bits = 40);

  std::int64_t of(const Scope& scope) const;

  struct Range {
    std::int64_t first, last;
  };
  /// Where every record of the caller is, among others.
  Range of_caller(BytesView name_space, BytesView caller) const;

 private:
  std::int64_t caller_prefix(BytesView name_space, BytesView caller) const;
  std::array<std::uint64_t, 2> key_{};
  std::uint64_t mask_;
};

}  // namespace einmal::sqlite
