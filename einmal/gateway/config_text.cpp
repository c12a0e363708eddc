#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "einmal/fingerprint/canonical_json.hpp"
#include "einmal/gateway/config_file.hpp"
#include "einmal/gateway/config_text.hpp"
#include "einmal/http/head.hpp"
#include "einmal/http/json_text.hpp"

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

constexpr std::array<Unit, 6> duration_units{{{"us", 1},
                                              {"ms", 1'000},
                                              {"s", 1'000'000},
                                              {"m", 60'000'000},
                                              {"h", 3'600'000'000},
                                              {"d", 86'400'000'000}}};
constexpr std::array<Unit, 4> size_units{
    {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}};

struct SourceKind {
  std::string_view name;
  CallerKind kind;
  bool needs_argument;
};
constexpr std::array<SourceKind, 5> caller_kinds{
    {{"header", CallerKind::header, true},
     {"fixed", CallerKind::fixed, true},
     {"jwt", CallerKind::jwt, true},
     {"mtls", CallerKind::mtls, false},
     {"auth-request", CallerKind::auth_request, true}}};

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
  std::int64_t microseconds = 0;
  if (!scaled(text, duration_units, microseconds))
    return invalid(text, "a duration such as \"250ms\", \"30s\", \"5m\", \"24h\" or \"30d\"");
  return Duration(microseconds);
}

Result<std::size_t> parse_size(std::string_view text) {
  std::int64_t bytes = 0;
  if (!scaled(text, size_units, bytes))
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
  for (const auto& each : caller_kinds) {
    if (each.name != kind || (each.needs_argument && argument.empty())) continue;
    caller.kind = each.kind;
    caller.argument = std::string(
        each.kind == CallerKind::mtls && argument.empty() ? std::string_view("subject") : argument);
    return {};
  }
  return invalid(spec,
                 "a caller source: header:NAME, fixed:NAME, jwt:CLAIM, mtls or auth-request:URL");
}

Result<ReconcileCondition> parse_reconcile_condition(std::string_view text) {
  const auto wrong = [&] {
    return invalid(text,
                   "a status such as \"404\", or a status and what stands in the JSON body, "
                   "such as \"200 /orders/0\" or \"200 /status = \\\"paid\\\"\"");
  };
  auto rest = text;
  std::int64_t status = 0;
  if (!take_number(rest, status) || status < 200 || status > 599) return wrong();
  ReconcileCondition condition;
  condition.status = static_cast<int>(status);
  rest = http::trim(rest);
  if (rest.empty()) return condition;
  const auto equals = rest.find('=');
  if (rest.front() != '/') return wrong();
  if (equals == std::string_view::npos) {
    if (rest.find_first_of(" \t\"") != std::string_view::npos) return wrong();
    condition.pointer = rest;
    return condition;
  }
  condition.pointer = http::trim(rest.substr(0, equals));
  condition.json = http::trim(rest.substr(equals + 1));
  if (!canonical_json(condition.json, JsonNumbers::exact)) return wrong();
  return condition;
}

namespace gateway {

namespace {

template <std::size_t N>
std::string in_largest_unit(std::int64_t value, const std::array<Unit, N>& units) {
  const Unit* best = &units.front();
  for (const auto& unit : units) {
    if (value != 0 && value % unit.factor == 0) best = &unit;
  }
  return std::to_string(value / best->factor) + std::string(best->name);
}

}  // namespace

std::string show(Duration duration) { return in_largest_unit(duration.count(), duration_units); }

std::string show_size(std::size_t bytes) {
  return in_largest_unit(static_cast<std::int64_t>(bytes), size_units);
}

std::string show(const HostPort& address) {
  const bool literal = address.host.find(':') != std::string::npos;
  return (literal ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string show(const UpstreamAddress& upstream) {
  return (upstream.tls ? "https://" : "http://") + show(upstream.address);
}

std::string show(const CallerConfig& caller) {
  for (const auto& each : caller_kinds) {
    if (each.kind == caller.kind) return std::string(each.name) + ":" + caller.argument;
  }
  return "-";
}

std::string show(const std::string& text) {
  std::string out;
  http::append_json_string(out, text);
  return out;
}

std::string show(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const auto& text : texts) out.append(out.size() == 1 ? "" : ", ").append(show(text));
  return out + "]";
}

std::string show(const std::map<std::string, std::string>& texts) {
  std::string out;
  for (const auto& [name, text] : texts) {
    out.append(out.empty() ? "{ " : ", ").append(show(name)).append(" = ").append(show(text));
  }
  return out.empty() ? "-" : out + " }";
}

std::string show_store_url(const std::string& url) {
  std::string shown = url;
  const auto slashes = shown.find("://");
  const auto at = shown.find('@', slashes == std::string::npos ? 0 : slashes);
  if (slashes != std::string::npos && at != std::string::npos) {
    const auto colon = shown.find(':', slashes + 3);
    if (colon < at) shown.replace(colon + 1, at - colon - 1, "***");
  }
  for (auto word = shown.find("password="); word != std::string::npos;
       word = shown.find("password=", word + 9)) {
    const auto end = std::min(shown.find_first_of("& ", word), shown.size());
    shown.replace(word + 9, end - word - 9, "***");
  }
  return show(shown);
}

}  // namespace gateway

}  // namespace einmal
