#include "einmal/probe/json_body.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

namespace einmal::probe {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Cuts valid JSON text at `separator` where it stands outside of strings and brackets.
std::vector<std::string_view> cut(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == separator && depth == 0) {
      parts.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  parts.push_back(text.substr(start));
  return parts;
}

}  // namespace

std::optional<JsonBody> JsonBody::read(std::string_view text) {
  boost::system::error_code error;
  const auto value = boost::json::parse(text, error);
  if (error || !value.is_object()) return std::nullopt;
  JsonBody body;
  text = trimmed(text);
  const auto inner = trimmed(text.substr(1, text.size() - 2));
  if (inner.empty()) return body;
  for (const auto member : cut(inner, ',')) {
    const auto name = cut(member, ':').front();
    body.members_.push_back(
        {std::string(trimmed(name)), std::string(trimmed(member.substr(name.size() + 1)))});
  }
  return body;
}

std::string JsonBody::text() const {
  std::string text = "{";
  for (const auto& member : members_)
    text.append(text.size() > 1 ? "," : "").append(member.name).append(":").append(member.value);
  return text + "}";
}

std::string JsonBody::reordered() const {
  auto other = *this;
  std::reverse(other.members_.begin(), other.members_.end());
  return other.text();
}

std::string JsonBody::respaced() const {
  std::string text = " {\n";
  for (std::size_t i = 0; i < members_.size(); ++i)
    text.append(i > 0 ? " ,\r\n" : "")
        .append("\t")
        .append(members_[i].name)
        .append(" :  ")
        .append(members_[i].value);
  return text + "\n}\n";
}

std::string JsonBody::with(std::string_view name, std::string_view value) const {
  auto other = *this;
  other.members_.push_back({"\"" + std::string(name) + "\"", std::string(value)});
  return other.text();
}

std::optional<std::string> JsonBody::changed() const {
  auto other = *this;
  for (auto& member : other.members_) {
    long long number = 0;
    const auto* end = member.value.data() + member.value.size();
    const auto [rest, error] = std::from_chars(member.value.data(), end, number);
    if (error != std::errc{} || rest != end) continue;
    member.value = std::to_string(number < 1'000'000'000 ? number + 1 : number - 1);
    return other.text();
  }
  for (auto& member : other.members_) {
    if (!member.value.starts_with('"')) continue;
    member.value.insert(member.value.size() - 1, "x");
    return other.text();
  }
  return std::nullopt;
}

std::optional<std::string> fill_in(std::string_view path, std::string_view document) {
  const auto open = path.find('{');
  const auto close = path.find('}', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return std::string(path);
  boost::system::error_code error;
  const auto value = boost::json::parse(document, error);
  if (error) return std::nullopt;
  const auto* found = value.find_pointer(path.substr(open + 1, close - open - 1), error);
  if (!found || !(found->is_string() || found->is_number())) return std::nullopt;
  const auto text =
      found->is_string() ? std::string(found->as_string()) : boost::json::serialize(*found);
  const auto rest = fill_in(path.substr(close + 1), document);
  if (!rest) return std::nullopt;
  return std::string(path.substr(0, open)) + text + *rest;
}

}  // namespace einmal::probe
