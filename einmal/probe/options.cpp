#include "einmal/probe/options.hpp"

#include <charconv>

namespace einmal::probe {

std::string Target::authority() const {
  const bool six = host.find(':') != std::string::npos;
  return (six ? "[" + host + "]" : host) +
         (port == (tls ? 443 : 80) ? "" : ":" + std::to_string(port));
}

std::string Target::origin() const { return (tls ? "https://" : "http://") + authority(); }

Result<Target> parse_target(std::string_view url) {
  const auto bad = [&](std::string_view why) {
    return failure(ErrorCode::invalid, std::string(why) + "; write http[s]://HOST[:PORT][/BASE]");
  };
  Target target;
  target.tls = http::istarts_with(url, "https://");
  if (target.tls)
    target.port = 443;
  else if (!http::istarts_with(url, "http://"))
    return bad("not an http URL");
  url.remove_prefix(target.tls ? 8 : 7);
  const auto slash = url.find('/');
  auto authority = url.substr(0, slash);
  if (slash != std::string_view::npos) target.base = std::string(url.substr(slash));
  while (target.base.ends_with('/')) target.base.pop_back();
  if (target.base.find_first_of("?# \t") != std::string::npos) return bad("a path only, no query");
  const auto bracket = authority.find(']');
  const auto colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    const auto digits = authority.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), target.port);
    if (error != std::errc{} || end != digits.data() + digits.size() || target.port == 0)
      return bad("the port is not a number from 1 to 65535");
    authority = authority.substr(0, colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']'))
    authority = authority.substr(1, authority.size() - 2);
  if (authority.empty() || authority.find_first_of("@[] \t") != std::string_view::npos)
    return bad("no usable host");
  target.host = std::string(authority);
  return target;
}

Result<Operation> parse_operation(std::string_view text) {
  const auto space = text.find(' ');
  const auto method = text.substr(0, space);
  const auto path = space == std::string_view::npos ? "" : http::trim(text.substr(space));
  bool clean = path.starts_with('/');
  for (const char c : path) clean = clean && c > ' ' && c < 0x7f;
  if (!http::is_token(method) || !clean)
    return failure(ErrorCode::invalid, "write METHOD /path, such as \"POST /orders\"");
  return Operation{std::string(method), std::string(path)};
}

Result<std::pair<std::string, std::string>> parse_header(std::string_view text) {
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  const auto value = colon == std::string_view::npos ? "" : http::trim(text.substr(colon + 1));
  if (colon == std::string_view::npos || !http::is_token(name) || !http::is_field_value(value))
    return failure(ErrorCode::invalid, "write a header as 'Name: value'");
  return std::pair(std::string(name), std::string(value));
}

}  // namespace einmal::probe
