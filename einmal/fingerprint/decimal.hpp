#pragma once

#include <cstdint>
#include <string_view>

namespace einmal {

/// Largest magnitude of an exponent as written that a JSON number may have.
inline constexpr std::int64_t max_json_exponent = 1'000'000'000;

/// The exact value of a JSON number: (-1)^negative * digits * 10^exponent, where digits = head
/// followed by tail has neither leading nor trailing zeros. Zero (also -0 and 0e7) has no digits,
/// is not negative and has exponent 0. Views into the number's text.
struct Decimal {
  bool negative = false;
  std::string_view head;
  std::string_view tail;
  std::int64_t exponent = 0;

  bool is_zero() const { return head.empty() && tail.empty(); }
};

/// Takes a number apart that follows the grammar of RFC 8259 and whose exponent as written is
/// within `max_json_exponent` (not checked again).
inline Decimal exact_decimal(std::string_view text) {
  Decimal value;
  const bool negative = text.front() == '-';
  if (negative) text.remove_prefix(1);
  std::size_t end = 0;
  const auto digits = [&] {
    const std::size_t begin = end;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    return text.substr(begin, end - begin);
  };
  value.head = digits();
  if (end < text.size() && text[end] == '.') {
    ++end;
    value.tail = digits();
  }
  if (end < text.size()) {  // e or E
    const char sign = text[++end];
    if (sign == '-' || sign == '+') ++end;
    for (const char c : digits()) value.exponent = value.exponent * 10 + (c - '0');
    if (sign == '-') value.exponent = -value.exponent;
  }
  value.exponent -= static_cast<std::int64_t>(value.tail.size());
  while (!value.tail.empty() && value.tail.back() == '0') {
    value.tail.remove_suffix(1);
    ++value.exponent;
  }
  if (value.head == "0") {
    value.head = {};
    while (!value.tail.empty() && value.tail.front() == '0') value.tail.remove_prefix(1);
  } else if (value.tail.empty()) {
    while (value.head.back() == '0') {
      value.head.remove_suffix(1);
      ++value.exponent;
    }
  }
  if (value.is_zero()) return {};
  value.negative = negative;
  return value;
}

}  // namespace einmal
