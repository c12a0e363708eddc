#include "einmal/client/window.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <string>

namespace einmal::client {

namespace json = boost::json;

namespace {

/// Digits with at most six decimals, as microseconds of `unit`.
std::optional<std::int64_t> take_number(std::string_view& text, std::int64_t unit) {
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc() || whole < 0 ||
      whole > 1'000'000'000'000 / std::max<std::int64_t>(1, unit / 1'000'000))
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  std::int64_t microseconds = whole * unit;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    for (std::int64_t part = unit / 10; !text.empty() && text.front() >= '0' && text.front() <= '9';
         part /= 10) {
      microseconds += (text.front() - '0') * part;
      text.remove_prefix(1);
    }
  }
  return microseconds;
}

std::int64_t unit_of(char designator, bool time) {
  constexpr std::int64_t second = 1'000'000;
  switch (designator) {
    case 'S':
      return time ? second : 0;
    case 'M':
      return time ? 60 * second : 0;
    case 'H':
      return time ? 3600 * second : 0;
    case 'D':
      return time ? 0 : 86400 * second;
    case 'W':
      return time ? 0 : 7 * 86400 * second;
    default:
      return 0;
  }
}

std::string_view take_segment(std::string_view& path) {
  const auto end = path.find('/');
  const auto segment = path.substr(0, end);
  path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
  return segment;
}

bool matches(std::string_view path_template, std::string_view path) {
  if (path_template == "*") return true;
  while (!path_template.empty() || !path.empty()) {
    if (path_template.empty() || path.empty()) return false;
    const auto wanted = take_segment(path_template);
    const auto found = take_segment(path);
    const bool variable = wanted.size() >= 2 && wanted.front() == '{' && wanted.back() == '}';
    if (variable ? found.empty() : wanted != found) return false;
  }
  return true;
}

std::string_view text(const json::object& object, std::string_view name) {
  const auto* member = object.if_contains(name);
  const auto* found = member != nullptr ? member->if_string() : nullptr;
  return found != nullptr ? std::string_view(found->data(), found->size()) : std::string_view();
}

}  // namespace

std::optional<Duration> parse_iso8601_duration(std::string_view text) {
  if (text.size() < 3 || text.front() != 'P') return std::nullopt;
  text.remove_prefix(1);
  bool time = false;
  std::int64_t sum = 0;
  while (!text.empty()) {
    if (text.front() == 'T') {
      if (time || text.size() == 1) return std::nullopt;
      time = true;
      text.remove_prefix(1);
    }
    const auto designator = text.find_first_not_of("0123456789.");
    if (designator == std::string_view::npos || designator == 0) return std::nullopt;
    const std::int64_t unit = unit_of(text[designator], time);
    if (unit == 0) return std::nullopt;
    const auto part = take_number(text, unit);
    if (!part || text.empty() || unit_of(text.front(), time) != unit) return std::nullopt;
    text.remove_prefix(1);
    sum += *part;
    if (sum < 0) return std::nullopt;
  }
  return Duration(sum);
}

std::optional<Duration> published_retention(std::string_view document, std::string_view method,
                                            std::string_view path) {
  boost::system::error_code broken;
  const auto value = json::parse(document, broken);
  const auto* object = broken ? nullptr : value.if_object();
  const auto* operations = object != nullptr ? object->if_contains("operations") : nullptr;
  const auto* list = operations != nullptr ? operations->if_array() : nullptr;
  if (list == nullptr) return std::nullopt;
  std::optional<Duration> shortest;
  for (const auto& element : *list) {
    const auto* operation = element.if_object();
    if (operation == nullptr || text(*operation, "method") != method) continue;
    if (!matches(text(*operation, "path"), path)) continue;
    const auto retention = parse_iso8601_duration(text(*operation, "retention"));
    if (retention && (!shortest || *retention < *shortest)) shortest = retention;
  }
  return shortest;
}

}  // namespace einmal::client
