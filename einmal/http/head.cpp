#include "einmal/http/head.hpp"

#include <algorithm>
#include <array>

namespace einmal::http {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

constexpr std::array<bool, 256> token_characters() {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~0123456789"
                                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}
constexpr auto token_table = token_characters();

}  // namespace

bool iequals(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

bool istarts_with(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && iequals(text.substr(0, prefix.size()), prefix);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return token_table[static_cast<unsigned char>(c)];
  });
}

bool is_field_value(std::string_view text) {
  if (!text.empty() && (is_blank(text.front()) || is_blank(text.back()))) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

std::optional<std::string_view> next_list_element(std::string_view& rest) {
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const auto element = trim(rest.substr(0, comma));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    if (!element.empty()) return element;
  }
  return std::nullopt;
}

HeaderLines::HeaderLines(std::initializer_list<HeaderLine> lines) {
  for (const auto& line : lines) add(line.name, line.value);
}

void HeaderLines::add(std::string_view name, std::string_view value) {
  const auto need = text_.size() + name.size() + value.size();
  spans_.push_back({static_cast<std::uint32_t>(text_.size()),
                    static_cast<std::uint32_t>(name.size()),
                    static_cast<std::uint32_t>(value.size())});
  if (need <= text_.capacity()) {
    text_.append(name).append(value);
    return;
  }
  std::string grown;  // the old buffer lives on until the views into it are copied
  grown.reserve(std::max(need, 2 * text_.capacity()));
  grown.append(text_).append(name).append(value);
  text_.swap(grown);
}

void HeaderLines::set(std::string_view name, std::string_view value) {
  remove(name);
  add(name, value);
}

std::size_t HeaderLines::remove(std::string_view name) {
  return remove_if([&](const HeaderLine& line) { return iequals(line.name, name); });
}

void HeaderLines::clear() {
  text_.clear();
  spans_.clear();
}

void HeaderLines::reserve(std::size_t lines, std::size_t bytes) {
  spans_.reserve(lines);
  text_.reserve(bytes);
}

std::optional<std::string_view> HeaderLines::first(std::string_view name) const {
  for (const auto& span : spans_) {
    const auto here = line(span);
    if (iequals(here.name, name)) return here.value;
  }
  return std::nullopt;
}

std::size_t HeaderLines::count(std::string_view name) const {
  return static_cast<std::size_t>(std::count_if(
      begin(), end(), [&](const HeaderLine& line) { return iequals(line.name, name); }));
}

std::vector<std::string_view> HeaderLines::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& line : *this) {
    if (iequals(line.name, name)) values.push_back(line.value);
  }
  return values;
}

bool HeaderLines::has_token(std::string_view name, std::string_view token) const {
  for (const auto& line : *this) {
    if (!iequals(line.name, name)) continue;
    auto rest = line.value;
    while (const auto element = next_list_element(rest)) {
      if (iequals(*element, token)) return true;
    }
  }
  return false;
}

bool operator==(const HeaderLines& a, const HeaderLines& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
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
    if (colon == std::string_view::npos) return std::nullopt;
    const auto name = line.substr(0, colon);
    const auto value = trim(line.substr(colon + 1));
    if (!is_token(name) || !is_field_value(value)) return std::nullopt;
    headers.add(name, value);
    bytes.remove_prefix(end + 2);
  }
  return headers;
}

}  // namespace einmal::http
