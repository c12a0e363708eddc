#include "einmal/http/replay_headers.hpp"

#include <algorithm>
#include <array>

#include "einmal/http/http_date.hpp"

namespace einmal::http {

namespace {

char spoken(char c) {
  if (c == '_') return '-';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool spoken_starts_with(std::string_view name, std::string_view prefix) {
  return name.size() >= prefix.size() && same_spoken_name(name.substr(0, prefix.size()), prefix);
}

template <std::size_t n>
bool is_one_of(std::string_view name, const std::array<std::string_view, n>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view each) { return iequals(name, each); });
}

bool is_ours_towards_upstream(std::string_view name) { return spoken_starts_with(name, "Einmal-"); }

bool is_ours_towards_client(std::string_view name) {
  return istarts_with(name, "Idempotency-") || iequals(name, "Idempotent-Replayed");
}

// The headers of RFC 9110 section 6.5.1 that change how a message is read or routed.
bool counts_in_a_head_only(std::string_view name) {
  constexpr std::array<std::string_view, 21> names = {"Host",
                                                      "Authorization",
                                                      "Cookie",
                                                      "Set-Cookie",
                                                      "Cache-Control",
                                                      "Expect",
                                                      "Max-Forwards",
                                                      "Pragma",
                                                      "Range",
                                                      "Age",
                                                      "Date",
                                                      "Expires",
                                                      "Location",
                                                      "Retry-After",
                                                      "Vary",
                                                      "Warning",
                                                      "WWW-Authenticate",
                                                      "Set-Cookie2",
                                                      "Forwarded",
                                                      "Prefer",
                                                      "Authentication-Info"};
  return is_one_of(name, names) || istarts_with(name, "Content-") || istarts_with(name, "If-") ||
         istarts_with(name, "X-Forwarded-");
}

}  // namespace

bool same_spoken_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return spoken(x) == spoken(y); });
}

bool is_hop_by_hop(std::string_view name) {
  constexpr std::array<std::string_view, 6> names = {"Connection",        "Keep-Alive", "TE",
                                                     "Transfer-Encoding", "Trailer",    "Upgrade"};
  return is_one_of(name, names) || istarts_with(name, "Proxy-");
}

void remove_hop_by_hop(HeaderLines& lines, const KeyNames& keys) {
  if (lines.has("Connection")) {
    HeaderLines named;  // copied: the lines that name are removed with those that they name
    for (const auto& line : lines) {
      if (!iequals(line.name, "Connection")) continue;
      auto rest = line.value;
      while (const auto option = next_list_element(rest)) {
        const bool for_everybody =
            iequals(*option, "Host") || istarts_with(*option, "Content-") || keys.contains(*option);
        if (!for_everybody) named.add(*option, {});
      }
    }
    lines.remove_if([&](const HeaderLine& line) { return named.has(line.name); });
  }
  lines.remove_if([](const HeaderLine& line) { return is_hop_by_hop(line.name); });
}

bool is_never_stored(std::string_view name) {
  constexpr std::array<std::string_view, 10> names = {
      "Date",        "Age",           "Set-Cookie",       "Set-Cookie2",
      "Alt-Svc",     "Server-Timing", "WWW-Authenticate", "Authentication-Info",
      "Retry-After", "Content-Length"};
  return is_hop_by_hop(name) || is_one_of(name, names) || is_ours_towards_upstream(name) ||
         is_ours_towards_client(name);
}

HeaderLines stored_lines(const HeaderLines& answer, const std::vector<std::string>& deny) {
  HeaderLines lines = answer;
  remove_hop_by_hop(lines, KeyNames{});
  lines.remove_if([&](const HeaderLine& line) {
    return is_never_stored(line.name) ||
           std::any_of(deny.begin(), deny.end(),
                       [&](const std::string& name) { return iequals(name, line.name); });
  });
  return lines;
}

void prepare_for_upstream(HeaderLines& lines, const UpstreamRules& rules) {
  constexpr std::array<std::string_view, 3> method_overrides = {
      "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"};
  remove_hop_by_hop(lines, rules.keys);
  lines.remove_if([&](const HeaderLine& line) {
    if (is_ours_towards_upstream(line.name)) return true;
    if (rules.caller_header && same_spoken_name(line.name, *rules.caller_header)) {
      return !rules.caller_trusted || !iequals(line.name, *rules.caller_header);
    }
    if (rules.keyed && (iequals(line.name, "Expect") || iequals(line.name, "Accept-Encoding"))) {
      return true;
    }
    return rules.matched &&
           std::any_of(method_overrides.begin(), method_overrides.end(),
                       [&](std::string_view name) { return same_spoken_name(line.name, name); });
  });
  if (rules.keyed) lines.add("Accept-Encoding", "identity");
}

void prepare_for_client(HeaderLines& lines, bool keyed) {
  remove_hop_by_hop(lines, KeyNames{});
  lines.remove_if([&](const HeaderLine& line) {
    return is_ours_towards_upstream(line.name) || (keyed && is_ours_towards_client(line.name));
  });
}

void prepare_trailers(HeaderLines& trailers, const KeyNames& keys,
                      const std::optional<std::string>& caller_header) {
  trailers.remove_if([&](const HeaderLine& line) {
    return is_hop_by_hop(line.name) || counts_in_a_head_only(line.name) ||
           is_ours_towards_upstream(line.name) || is_ours_towards_client(line.name) ||
           keys.contains(line.name) ||
           (caller_header && same_spoken_name(line.name, *caller_header));
  });
}

std::string_view name(IdempotencyStatus status) {
  switch (status) {
    case IdempotencyStatus::executed:
      return "executed";
    case IdempotencyStatus::replayed:
      return "replayed";
    case IdempotencyStatus::resolved:
      return "resolved";
    case IdempotencyStatus::in_progress:
      return "in-progress";
    case IdempotencyStatus::mismatch:
      return "mismatch";
    case IdempotencyStatus::uncertain:
      return "uncertain";
    case IdempotencyStatus::released:
      return "released";
    case IdempotencyStatus::expired:
      return "expired";
    case IdempotencyStatus::unrecorded:
      return "unrecorded";
    case IdempotencyStatus::unprotected:
      return "unprotected";
    case IdempotencyStatus::rejected:
      return "rejected";
  }
  return {};
}

void add_marks(HeaderLines& lines, const Marks& marks) {
  const bool replay =
      marks.status == IdempotencyStatus::replayed || marks.status == IdempotencyStatus::resolved;
  lines.add("Idempotency-Status", name(marks.status));
  if (replay) lines.add("Idempotent-Replayed", "true");
  if (replay && marks.effect == Effect::unknown) lines.add("Idempotency-Effect", "unknown");
  if (marks.expires) lines.add("Idempotency-Expires", imf_fixdate(*marks.expires));
}

}  // namespace einmal::http
