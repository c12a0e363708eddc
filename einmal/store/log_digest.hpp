#pragma once

#include <string>
#include <string_view>

#include "einmal/base/bytes.hpp"
#include "einmal/core/scope.hpp"
#include "einmal/store/store.hpp"

namespace einmal {

/// How scopes and callers are named where people and log collectors read: eight bytes of
/// HMAC-SHA-256 under the store's secret, in hexadecimal. The same scope has the same digest in
/// every process on that store; nobody without the secret can test a guess. Immutable.
class LogDigest {
 public:
  explicit LogDigest(const Store& store) : secret_(store.digest_secret()) {}

  /// Over the whole scope: names the key.
  std::string of(const Scope& scope) const;
  /// Over namespace and caller.
  std::string of_caller(std::string_view name_space, std::string_view caller) const;

 private:
  Bytes secret_;
};

}  // namespace einmal
