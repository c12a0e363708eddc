#include "einmal/http/negotiation.hpp"

#include <algorithm>
#include <charconv>

namespace einmal::http {

namespace {

constexpr std::uint64_t longest_wait_seconds = 86'400;

std::string_view cut(std::string_view& rest, char separator) {
  // Quotation marks hide the separator.
  bool quoted = false;
  std::size_t at = 0;
  for (; at < rest.size(); ++at) {
    const char c = rest[at];
    if (quoted && c == '\\') ++at;
    if (c == '"') quoted = !quoted;
    if (c == separator && !quoted) break;
  }
  const auto piece = trim(rest.substr(0, at));
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return piece;
}

std::optional<Duration> wait_of(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  if (value.empty() ||
      !std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  std::uint64_t seconds = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (read.ec != std::errc()) seconds = longest_wait_seconds;
  return std::chrono::seconds(std::min(seconds, longest_wait_seconds));
}

// weight = OWS ";" OWS "q=" qvalue; a malformed one counts as 0: better refused than misread.
int quality_of(std::string_view parameters) {
  int quality = 1000;
  while (!parameters.empty()) {
    const auto parameter = cut(parameters, ';');
    const auto equals = std::min(parameter.find('='), parameter.size());
    if (!iequals(trim(parameter.substr(0, equals)), "q")) continue;
    const auto digits = trim(parameter.substr(std::min(equals + 1, parameter.size())));
    if (digits.empty() || digits.size() > 5 || (digits[0] != '0' && digits[0] != '1')) return 0;
    if (digits.size() > 1 && digits[1] != '.') return 0;
    quality = (digits[0] - '0') * 1000;
    int weight = 100;
    for (const char c : digits.substr(std::min<std::size_t>(2, digits.size()))) {
      if (c < '0' || c > '9') return 0;
      quality += (c - '0') * weight;
      weight /= 10;
    }
    if (quality > 1000) return 0;
  }
  return quality;
}

std::string_view plain_name(std::string_view coding) {
  if (iequals(coding, "x-gzip")) return "gzip";
  if (iequals(coding, "x-compress")) return "compress";
  return coding;
}

}  // namespace

Preferences parse_prefer(const HeaderLines& head) {
  Preferences preferences;
  bool wait_seen = false;
  for (const auto& line : head) {
    if (!iequals(line.name, "Prefer")) continue;
    auto list = line.value;
    while (!list.empty()) {
      auto element = cut(list, ',');
      const auto preference = cut(element, ';');  // its parameters say nothing to us
      const auto equals = preference.find('=');
      const auto name = trim(preference.substr(0, equals));
      if (iequals(name, "respond-async")) preferences.respond_async = true;
      if (!iequals(name, "wait") || wait_seen) continue;
      wait_seen = true;
      if (equals != std::string_view::npos) {
        preferences.wait = wait_of(trim(preference.substr(equals + 1)));
      }
    }
  }
  return preferences;
}

AcceptEncoding::AcceptEncoding(const HeaderLines& head) {
  bool seen = false;
  for (const auto& line : head) {
    if (!iequals(line.name, "Accept-Encoding")) continue;
    seen = true;
    auto list = line.value;
    while (!list.empty()) {
      auto element = cut(list, ',');
      const auto coding = plain_name(cut(element, ';'));
      if (!coding.empty()) codings_.emplace_back(coding, quality_of(element));
    }
  }
  if (!seen) codings_ = {{"identity", 1000}};
}

int AcceptEncoding::quality(std::string_view coding) const {
  coding = plain_name(coding);
  const auto find = [&](std::string_view name) {
    return std::find_if(codings_.begin(), codings_.end(),
                        [&](const auto& each) { return iequals(each.first, name); });
  };
  if (const auto named = find(coding); named != codings_.end()) return named->second;
  if (const auto any = find("*"); any != codings_.end()) return any->second;
  // Identity is acceptable unless it is excluded; by the smallest weight, so that a coding that
  // was asked for comes first.
  return iequals(coding, "identity") ? 1 : 0;
}

bool AcceptEncoding::accepts_all(std::string_view content_encoding) const {
  bool coded = false;
  while (const auto coding = next_list_element(content_encoding)) {
    coded = true;
    if (!accepts(*coding)) return false;
  }
  return coded || accepts("identity");
}

std::optional<std::string_view> AcceptEncoding::best_of(
    const std::vector<std::string_view>& candidates) const {
  std::optional<std::string_view> best;
  int best_quality = 0;
  for (const auto candidate : candidates) {
    if (const int here = quality(candidate); here > best_quality) {
      best = candidate;
      best_quality = here;
    }
  }
  if (best_quality < quality("identity")) return std::nullopt;
  return best;
}

}  // namespace einmal::http
