#include "einmal/http/head.hpp"

#include <algorithm>

namespace einmal::http {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

}  // namespace

bool iequals(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

void HeaderLines::set(std::string_view name, std::string value) {
  remove(name);
  add(std::string(name), std::move(value));
}

std::size_t HeaderLines::remove(std::string_view name) {
  return std::erase_if(lines_, [&](const HeaderLine& line) { return iequals(line.name, name); });
}

std::optional<std::string_view> HeaderLines::first(std::string_view name) const {
  for (const auto& line : lines_) {
    if (iequals(line.name, name)) return line.value;
  }
  return std::nullopt;
}

std::size_t HeaderLines::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(lines_.begin(), lines_.end(),
                    [&](const HeaderLine& line) { return iequals(line.name, name); }));
}

std::vector<std::string_view> HeaderLines::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& line : lines_) {
    if (iequals(line.name, name)) values.push_back(line.value);
  }
  return values;
}

bool HeaderLines::has_token(std::string_view name, std::string_view token) const {
  for (std::string_view rest : all(name)) {
    while (!rest.empty()) {
      const auto comma = rest.find(',');
      if (iequals(trim(rest.substr(0, comma)), token)) return true;
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return false;
}

std::string serialize(const HeaderLines& headers) {
  std::string out;
  for (const auto& line : headers)
    out.append(line.name).append(": ").append(line.value).append("\r\n");
  return out;
}

std::optional<HeaderLines> parse_stored_headers(std::string_view bytes) {
  HeaderLines headers;
  while (!bytes.empty()) {
    const auto end = bytes.find("\r\n");
    if (end == std::string_view::npos) return std::nullopt;
    const auto line = bytes.substr(0, end);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    headers.add(std::string(line.substr(0, colon)), std::string(trim(line.substr(colon + 1))));
    bytes.remove_prefix(end + 2);
  }
  return headers;
}

}  // namespace einmal::http
