#pragma once

#include <optional>

#include "einmal/fingerprint/canonical_writer.hpp"
#include "einmal/fingerprint/fingerprint.hpp"

namespace einmal {

/// Writes the bytes that `fingerprint` is the SHA-256 of (docs/formats/fingerprint.md). If the
/// request is unusable, what was written means nothing.
std::optional<Unusable> write_canonical_form(CanonicalWriter& out,
                                             const FingerprintProfile& profile,
                                             const FingerprintInput& input);

}  // namespace einmal
