#include "einmal/fingerprint/media_type.hpp"

#include <algorithm>

#include "einmal/http/head.hpp"

namespace einmal {

namespace {

enum class Backslash { escapes, stays };

/// The token at the start of `text`, taken off; empty if there is none.
std::string_view take_token(std::string_view& text) {
  const auto token = text.substr(0, text.find_first_of("/;= \t\""));
  if (!http::is_token(token)) return {};
  text.remove_prefix(token.size());
  return token;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::string> take_quoted(std::string_view& text, Backslash backslash) {
  std::string value;
  text.remove_prefix(1);
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '"') return value;
    if (c == '\\' && !text.empty()) {
      if (backslash == Backslash::stays) value.push_back(c);
      value.push_back(text.front());
      text.remove_prefix(1);
    } else {
      value.push_back(c);
    }
  }
  return std::nullopt;
}

/// `; name=value` again and again, to the end of `text`.
bool take_parameters(std::string_view text, Backslash backslash, Parameterised& out) {
  for (text = http::trim(text); !text.empty(); text = http::trim(text)) {
    if (!take(text, ';')) return false;
    text = http::trim(text);
    if (text.empty() || text.front() == ';') continue;
    std::string name = lower_case(take_token(text));
    if (name.empty() || out.find(name) != nullptr || !take(text, '=')) return false;
    std::optional<std::string> value;
    if (!text.empty() && text.front() == '"') {
      value = take_quoted(text, backslash);
    } else if (const auto token = take_token(text); !token.empty()) {
      value = std::string(token);
    }
    if (!value) return false;
    out.parameters.emplace_back(std::move(name), std::move(*value));
  }
  std::sort(out.parameters.begin(), out.parameters.end());
  return true;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

const std::string* Parameterised::find(std::string_view name) const {
  for (const auto& parameter : parameters) {
    if (parameter.first == name) return &parameter.second;
  }
  return nullptr;
}

void Parameterised::remove(std::string_view name) {
  parameters.erase(std::remove_if(parameters.begin(), parameters.end(),
                                  [&](const auto& parameter) { return parameter.first == name; }),
                   parameters.end());
}

void Parameterised::write(CanonicalWriter& out) const {
  out.bytes(value);
  out.count(parameters.size());
  for (const auto& parameter : parameters) {
    out.bytes(parameter.first);
    out.bytes(parameter.second);
  }
}

std::optional<Parameterised> parse_media_type(std::string_view text) {
  Parameterised type;
  text = http::trim(text);
  type.value = lower_case(take_token(text));
  if (type.value.empty() || !take(text, '/')) return std::nullopt;
  const auto subtype = take_token(text);
  if (subtype.empty()) return std::nullopt;
  type.value.append("/").append(lower_case(subtype));
  if (!take_parameters(text, Backslash::escapes, type)) return std::nullopt;
  for (auto& parameter : type.parameters) {
    if (parameter.first != "charset") continue;
    parameter.second = lower_case(parameter.second);
    if (parameter.second == "utf8") parameter.second = "utf-8";
    if (parameter.second == "utf-8" && (is_json(type) || is_form(type))) type.remove("charset");
    break;
  }
  return type;
}

std::optional<Parameterised> parse_disposition(std::string_view text) {
  Parameterised disposition;
  text = http::trim(text);
  disposition.value = lower_case(take_token(text));
  if (disposition.value.empty()) return std::nullopt;
  if (!take_parameters(text, Backslash::stays, disposition)) return std::nullopt;
  return disposition;
}

bool is_json(const Parameterised& media_type) {
  if (media_type.value != "application/json" && !ends_with(media_type.value, "+json")) return false;
  const std::string* charset = media_type.find("charset");
  return charset == nullptr || *charset == "utf-8" || *charset == "us-ascii";
}

bool is_form(const Parameterised& media_type) {
  return media_type.value == "application/x-www-form-urlencoded";
}

bool is_multipart(const Parameterised& media_type) {
  return media_type.value.compare(0, 10, "multipart/") == 0;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

}  // namespace einmal
