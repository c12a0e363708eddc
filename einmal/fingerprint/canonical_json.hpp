#pragma once

#include <cstdint>

#include "einmal/base/bytes.hpp"
#include "einmal/base/error.hpp"

namespace einmal {

enum class JsonNumbers : std::uint8_t {
  /// RFC 8785: as ECMAScript prints the nearest IEEE 754 double. Numbers that differ may become
  /// equal (9007199254740993 and ...992); fingerprints never use this.
  ieee_double,
  /// By exact decimal value: an integer without trailing zeros and a power of ten, `12e-1`; 0.
  exact,
};

/// `text` as canonical JSON text: with JsonNumbers::ieee_double byte for byte what the JSON
/// Canonicalization Scheme (RFC 8785) prescribes. No white space, members sorted by UTF-16 units,
/// strings minimally escaped. Errors: invalid, saying what and where, for text that is not JSON
/// (RFC 8259) or has no single meaning: duplicate names, lone surrogates, invalid UTF-8, a byte
/// order mark, nesting deeper than 64, an exponent beyond +-10^9, and with ieee_double a number
/// beyond the range of a double.
Result<Bytes> canonical_json(BytesView text, JsonNumbers numbers);

}  // namespace einmal
