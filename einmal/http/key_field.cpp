#include "einmal/http/key_field.hpp"

#include <algorithm>
#include <utility>

#include "einmal/core/scope.hpp"
#include "einmal/http/structured_field.hpp"

namespace einmal::http {

namespace {

constexpr std::string_view too_long = "the key is longer than 255 bytes";
constexpr std::string_view bad_byte =
    "the key holds a byte outside visible ASCII (0x21-0x7E), or a comma, semicolon, quotation mark "
    "or backslash outside of quotation marks";
constexpr std::string_view twice = "the request carries more than one key";

KeyFound checked(std::string content, std::string_view why_not) {
  if (content.empty()) return key::Invalid{"the key is empty"};
  if (content.size() > max_key_bytes) return key::Invalid{too_long};
  if (!is_valid_key(content)) return key::Invalid{why_not};
  return key::Present{std::move(content)};
}

}  // namespace

bool KeyNames::contains(std::string_view name) const {
  return iequals(name, header) ||
         std::any_of(aliases.begin(), aliases.end(),
                     [&](const std::string& alias) { return iequals(name, alias); });
}

KeyFound parse_key(std::string_view value) {
  value = trim(value);
  if (value.starts_with('"')) {
    auto content = parse_string_item(value);
    if (!content) return key::Invalid{"the quoted key is not a String of RFC 8941"};
    return checked(std::move(*content), "the key holds a byte outside visible ASCII (0x21-0x7E)");
  }
  if (value.find_first_of(",;\"\\") != std::string_view::npos) return key::Invalid{bad_byte};
  return checked(std::string(value), bad_byte);
}

KeyFound find_key(const HeaderLines& head, const KeyNames& names) {
  KeyFound found = key::Absent{};
  for (const auto& line : head) {
    if (!names.contains(line.name)) continue;
    if (!std::holds_alternative<key::Absent>(found)) return key::Invalid{twice};
    found = parse_key(line.value);
  }
  return found;
}

KeyFound parse_member_key(std::string_view content) {
  return checked(std::string(content), "the key holds a byte outside visible ASCII (0x21-0x7E)");
}

KeyFound only_key(KeyFound in_head, KeyFound in_body) {
  if (std::holds_alternative<key::Absent>(in_head)) return in_body;
  if (std::holds_alternative<key::Absent>(in_body)) return in_head;
  return key::Invalid{twice};
}

}  // namespace einmal::http
