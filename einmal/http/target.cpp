#include "einmal/http/target.hpp"

#include <algorithm>
#include <charconv>

#include "einmal/http/head.hpp"

namespace einmal::http {

namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// reg-name = *( unreserved / pct-encoded / sub-delims ), RFC 3986 section 3.2.2
bool is_reg_name(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size() || !is_hex(text[i + 1]) || !is_hex(text[i + 2])) return false;
      i += 2;
      continue;
    }
    const bool alphanumeric =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!alphanumeric && std::string_view("-._~!$&'()*+,;=").find(c) == std::string_view::npos) {
      return false;
    }
  }
  return !text.empty();
}

bool is_ip_literal(std::string_view text) {
  if (text.size() < 4 || text.front() != '[' || text.back() != ']') return false;
  const auto inside = text.substr(1, text.size() - 2);
  return std::all_of(inside.begin(), inside.end(),
                     [](char c) { return is_hex(c) || c == ':' || c == '.'; });
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

}  // namespace

std::optional<Authority> parse_authority(std::string_view text) {
  const auto bracket = text.find(']');
  const auto colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const auto host = text.substr(0, colon);
  if (!is_reg_name(host) && !is_ip_literal(host)) return std::nullopt;
  Authority authority{lower(host), std::nullopt};
  if (colon == std::string_view::npos || colon + 1 == text.size()) return authority;
  const auto digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  authority.port = port;
  return authority;
}

std::string to_string(const Authority& authority, std::string_view scheme) {
  const std::uint16_t implied = iequals(scheme, "https") ? 443 : 80;
  if (!authority.port || *authority.port == implied) return authority.host;
  return authority.host + ":" + std::to_string(*authority.port);
}

std::optional<AbsoluteTarget> parse_absolute_target(std::string_view target) {
  const auto colon = target.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  const auto scheme = target.substr(0, colon);
  if (!iequals(scheme, "http") && !iequals(scheme, "https")) return std::nullopt;
  const auto after = target.substr(colon + 3);
  const auto end = std::min(after.find_first_of("/?#"), after.size());
  return AbsoluteTarget{scheme, after.substr(0, end), after.substr(end)};
}

}  // namespace einmal::http
