#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>

#include "einmal/base/error.hpp"
#include "einmal/core/limits.hpp"

namespace einmal {

/// Whether `key` may name an operation: 1..255 bytes of visible ASCII (0x21-0x7E), opaque.
bool is_valid_key(std::string_view key);

/// The identity of one logical operation: (namespace, caller, operation, key). Only `make` builds
/// one, so an empty key or caller never reaches a store.
class Scope {
 public:
  /// Errors: invalid, naming the part that is empty, too long or (key) outside 0x21-0x7E.
  static Result<Scope> make(std::string name_space, std::string caller, std::string operation,
                            std::string key);

  const std::string& name_space() const { return name_space_; }
  const std::string& caller() const { return caller_; }
  const std::string& operation() const { return operation_; }
  const std::string& key() const { return key_; }

  /// Length-prefixed concatenation of the four parts: equal exactly when the scopes are equal.
  /// What digests of a scope (index, log digest, derived keys) are computed over.
  std::string canonical_bytes() const;

  friend bool operator==(const Scope&, const Scope&) = default;
  friend auto operator<=>(const Scope&, const Scope&) = default;

 private:
  Scope(std::string name_space, std::string caller, std::string operation, std::string key);
  std::string name_space_, caller_, operation_, key_;
};

}  // namespace einmal
