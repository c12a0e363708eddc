#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "einmal/core/scope.hpp"

namespace einmal {

/// The idempotency key to hand to another system, for one step of an operation or (no step) for all
/// of it: SHA-256 over "einmal derived key 1", the scope's canonical bytes and the step if there is
/// one, each length-prefixed (append_length_prefixed), as 64 lower-case hex digits.
///
/// It names the scope and the step, nothing else: the same across takeover, release, free and
/// expiry, in every process and language (SQL: einmal.derive_key), and different for two callers
/// with one key. An empty step is a step. Whoever may guess the four parts of the scope can compute
/// it: it is a name, not a secret.
std::string derive_key(const Scope& scope, std::optional<std::string_view> step = std::nullopt);

/// The same for systems that want a UUID: the first 16 bytes of the digest with the version and
/// variant bits of a version 8 UUID (RFC 9562 section 5.8). 122 bits of it are left.
std::string derive_uuid(const Scope& scope, std::optional<std::string_view> step = std::nullopt);

}  // namespace einmal
