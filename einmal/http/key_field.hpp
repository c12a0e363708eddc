#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "einmal/http/head.hpp"

namespace einmal::http {

/// Where a request may carry its key. Names are compared case-insensitively.
struct KeyNames {
  std::string header = "Idempotency-Key";
  std::vector<std::string> aliases;

  bool contains(std::string_view name) const;
};

namespace key {
struct Absent {
  friend bool operator==(const Absent&, const Absent&) = default;
};
struct Present {
  std::string value;  ///< 1..255 bytes of 0x21-0x7E (core's is_valid_key).
  friend bool operator==(const Present&, const Present&) = default;
};
struct Invalid {
  std::string_view why;  ///< For the answer's detail; holds nothing of the key.
};
}  // namespace key
using KeyFound = std::variant<key::Absent, key::Present, key::Invalid>;

/// The key in one field value: an RFC 8941 String (parameters ignored), or bare: 1..255 bytes of
/// 0x21-0x7E without `"` `,` `;` `\`. Both spell the same key. Never Absent: an empty value is
/// invalid.
KeyFound parse_key(std::string_view value);

/// The key of a request head. A second line or alias is invalid even if it spells the same key:
/// an intermediary that joined or dropped lines would make another request of it.
KeyFound find_key(const HeaderLines& head, const KeyNames& names);

/// The key in the body member configured to carry it: the string itself, without any quoting.
KeyFound parse_member_key(std::string_view content);

/// The one key of a request that may carry it in its head and in its body: two are invalid.
KeyFound only_key(KeyFound in_head, KeyFound in_body);

}  // namespace einmal::http
