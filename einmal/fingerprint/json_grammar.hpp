#pragma once

#include <string>
#include <string_view>

namespace einmal {

/// Deepest nesting of arrays and objects that a JSON body may have.
inline constexpr std::size_t max_json_depth = 64;

/// What the slow, exact look at a refused text says.
struct JsonScan {
  bool follows_grammar = false;
  /// The first thing in a text that follows the grammar which leaves it without a single meaning:
  /// byte order mark, invalid UTF-8, lone surrogate, depth, exponent. Empty if there is none;
  /// duplicate names are not looked for.
  std::string fault;
};

/// Decides whether `text` is JSON by the grammar of RFC 8259 alone, over bytes: any depth, any
/// exponent, any bytes >= 80 in strings, any \uXXXX, a byte order mark before it. Linear,
/// iterative.
JsonScan scan_json(std::string_view text);

/// Length of the well-formed UTF-8 sequence (RFC 3629) at the start of `text`, 0 if there is none.
std::size_t utf8_sequence(std::string_view text);

}  // namespace einmal
