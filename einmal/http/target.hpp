#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace einmal::http {

/// Host and port of a `Host` field or an http(s) URI (RFC 3986 section 3.2, without user
/// information).
struct Authority {
  std::string host;  ///< Lower case; an IPv6 literal keeps its brackets.
  std::optional<std::uint16_t> port;
  friend bool operator==(const Authority&, const Authority&) = default;
};

/// Nothing if it is not `host [":" [port]]` with a non-empty host.
std::optional<Authority> parse_authority(std::string_view text);

/// `host` or `host:port`, without the port that `scheme` implies (http 80, https 443).
std::string to_string(const Authority& authority, std::string_view scheme);

/// A request target in absolute-form, taken apart. Views into the target.
struct AbsoluteTarget {
  std::string_view scheme;     ///< As it came: http or https in any case.
  std::string_view authority;  ///< As it came, possibly malformed.
  std::string_view rest;       ///< Path and query as they came; may be empty or begin with '?'.
};

/// Nothing if the target does not begin with an http or https scheme and "://".
std::optional<AbsoluteTarget> parse_absolute_target(std::string_view target);

}  // namespace einmal::http
