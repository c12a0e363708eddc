#include <array>
#include <charconv>
#include <limits>

#include "einmal/gateway/config_file.hpp"

/// The small languages inside configuration values: addresses, durations, sizes, caller sources.

namespace einmal {

namespace {

tl::unexpected<Error> invalid(std::string_view text, std::string_view wanted) {
  return failure(ErrorCode::invalid, "'" + std::string(text) + "' is not " + std::string(wanted));
}

/// The leading digits of `text` as a number; what follows them stays in `text`.
bool take_number(std::string_view& text, std::int64_t& into) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

template <std::size_t N>
bool scaled(std::string_view text, const std::array<Unit, N>& units, std::int64_t& into) {
  std::int64_t number = 0;
  if (!take_number(text, number)) return false;
  for (const auto& unit : units) {
    if (text != unit.name) continue;
    if (number > std::numeric_limits<std::int64_t>::max() / unit.factor) return false;
    into = number * unit.factor;
    return true;
  }
  return false;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  static constexpr std::array<Unit, 6> units{{{"us", 1},
                                              {"ms", 1'000},
                                              {"s", 1'000'000},
                                              {"m", 60'000'000},
                                              {"h", 3'600'000'000},
                                              {"d", 86'400'000'000}}};
  std::int64_t microseconds = 0;
  if (!scaled(text, units, microseconds))
    return invalid(text, "a duration such as \"250ms\", \"30s\", \"5m\", \"24h\" or \"30d\"");
  return Duration(microseconds);
}

Result<std::size_t> parse_size(std::string_view text) {
  static constexpr std::array<Unit, 4> units{
      {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}};
  std::int64_t bytes = 0;
  if (!scaled(text, units, bytes))
    return invalid(text, "a size such as \"512B\", \"64KiB\" or \"1MiB\"");
  return static_cast<std::size_t>(bytes);
}

Result<HostPort> parse_host_port(std::string_view text) {
  const auto wrong = [&] { return invalid(text, "HOST:PORT"); };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  auto host = text.substr(0, colon);
  auto digits = text.substr(colon + 1);
  std::int64_t port = 0;
  if (!take_number(digits, port) || !digits.empty() || port > 65535) return wrong();
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find_first_of(":[]/@ ") != std::string_view::npos))
    return wrong();
  return HostPort{std::string(host), static_cast<std::uint16_t>(port)};
}

Result<UpstreamAddress> parse_upstream(std::string_view url) {
  const auto wrong = [&] {
    return invalid(url, "an upstream such as \"http://127.0.0.1:9000\" (no path, no user)");
  };
  UpstreamAddress upstream;
  auto rest = url;
  if (rest.starts_with("https://")) {
    upstream.tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return wrong();
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const auto port_at = rest.find(':', rest.starts_with('[') ? rest.find(']') : 0);
  const auto with_port = port_at == std::string_view::npos
                             ? std::string(rest) + (upstream.tls ? ":443" : ":80")
                             : std::string(rest);
  const auto address = parse_host_port(with_port);
  if (!address || address->port == 0) return wrong();
  upstream.address = *address;
  return upstream;
}

Result<void> parse_caller(std::string_view spec, CallerConfig& caller) {
  const auto colon = spec.find(':');
  const auto kind = spec.substr(0, colon);
  const auto argument =
      colon == std::string_view::npos ? std::string_view{} : spec.substr(colon + 1);
  struct Kind {
    std::string_view name;
    CallerKind kind;
    bool needs_argument;
  };
  static constexpr std::array<Kind, 5> kinds{{{"header", CallerKind::header, true},
                                              {"fixed", CallerKind::fixed, true},
                                              {"jwt", CallerKind::jwt, true},
                                              {"mtls", CallerKind::mtls, false},
                                              {"auth-request", CallerKind::auth_request, true}}};
  for (const auto& each : kinds) {
    if (each.name != kind || (each.needs_argument && argument.empty())) continue;
    caller.kind = each.kind;
    caller.argument = std::string(argument);
    return {};
  }
  return invalid(spec,
                 "a caller source: header:NAME, fixed:NAME, jwt:CLAIM, mtls or auth-request:URL");
}

}  // namespace einmal
