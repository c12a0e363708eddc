#pragma once

#include <string>

#include "einmal/core/scope.hpp"

namespace einmal::gateway {

/// The key that the upstream gets with `upstream_key = "derived"`: SHA-256 over "einmal derived key
/// 1" and the scope, both length-prefixed, as 64 hex digits. It names the scope: the same across
/// takeover, release, free and expiry, and different for two callers with one key.
std::string derived_key(const Scope& scope);

}  // namespace einmal::gateway
