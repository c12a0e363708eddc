#include "einmal/fingerprint/target.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace einmal {

namespace {

constexpr char upper_hex[] = "0123456789ABCDEF";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// The byte that the escape at the start of `text` stands for; -1 if there is no whole escape.
int escaped_byte(std::string_view text) {
  if (text.size() < 3 || text[0] != '%') return -1;
  const int high = hex_digit(text[1]);
  const int low = hex_digit(text[2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void append_escape(std::string& out, unsigned char byte) {
  out.push_back('%');
  out.push_back(upper_hex[byte >> 4]);
  out.push_back(upper_hex[byte & 15]);
}

/// Whether a path that begins with a slash is its own canonical form: a look before the work.
bool is_canonical(std::string_view path) {
  char before = '\0';
  for (const char c : path) {
    if (c <= 0x20 || c >= 0x7f || c == '%') return false;
    if (before == '/' && (c == '/' || c == '.')) return false;
    before = c;
  }
  return before != '/' || path.size() == 1;
}

std::string spell_path(std::string_view path) {
  std::string out;
  out.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    if (const int byte = escaped_byte(path.substr(i)); byte >= 0) {
      if (is_unreserved(static_cast<char>(byte))) {
        out.push_back(static_cast<char>(byte));
      } else {
        append_escape(out, static_cast<unsigned char>(byte));
      }
      i += 2;
    } else if (c > 0x20 && c < 0x7f && c != '%') {
      out.push_back(c);
    } else {
      append_escape(out, static_cast<unsigned char>(c));
    }
  }
  return out;
}

/// RFC 3986, 5.2.4, for a path that begins with a slash, segment by segment.
std::vector<std::string_view> without_dot_segments(std::string_view path) {
  std::vector<std::string_view> segments;
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    if (segment == "..") {
      if (!segments.empty()) segments.pop_back();
    } else if (segment != ".") {
      segments.push_back(segment);
    }
  }
  return segments;
}

/// Decodes `text` by the rules of form bodies and spells it anew: unreserved characters as they
/// are, everything else escaped. A malformed escape stays, and so differs from `%25` and what
/// follows.
void append_respelled(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if (text[i] == '+') {
      byte = ' ';
    } else if (const int escaped = escaped_byte(text.substr(i)); escaped >= 0) {
      byte = static_cast<unsigned char>(escaped);
      i += 2;
    }
    if (is_unreserved(static_cast<char>(byte))) {
      out.push_back(static_cast<char>(byte));
    } else {
      append_escape(out, byte);
    }
  }
}

}  // namespace

TargetParts split_target(std::string_view target) {
  TargetParts parts;
  if (!target.empty() && target.front() != '/') {
    const auto scheme = target.find("://");
    if (scheme != std::string_view::npos && scheme < target.find_first_of("/?#")) {
      target.remove_prefix(scheme + 3);
      parts.authority = target.substr(0, target.find_first_of("/?#"));
      target.remove_prefix(parts.authority.size());
    }
  }
  const auto mark = target.find('?');
  parts.path = target.substr(0, mark);
  if (mark != std::string_view::npos) parts.query = target.substr(mark + 1);
  return parts;
}

std::string canonical_path(std::string_view target) {
  const auto parts = split_target(target);
  if (parts.path.empty()) return parts.authority.empty() ? std::string() : "/";
  if (parts.path.front() != '/') return std::string(parts.path);
  if (is_canonical(parts.path)) return std::string(parts.path);
  const std::string spelled = spell_path(parts.path);
  std::string out;
  out.reserve(spelled.size());
  for (const auto segment : without_dot_segments(spelled)) {
    if (!segment.empty()) out.append("/").append(segment);
  }
  return out.empty() ? "/" : out;
}

std::string canonical_query(std::string_view query) {
  struct Pair {
    std::size_t begin, name_end, end;  // in `spelled`
  };
  if (query.empty()) return {};
  std::string spelled;
  spelled.reserve(query.size() + query.size() / 4);
  std::vector<Pair> pairs;
  while (!query.empty()) {
    const auto piece = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), piece.size() + 1));
    if (piece.empty()) continue;
    const auto equals = piece.find('=');
    Pair pair{spelled.size(), 0, 0};
    append_respelled(spelled, piece.substr(0, equals));
    pair.name_end = spelled.size();
    if (equals != std::string_view::npos) {
      spelled.push_back('=');
      append_respelled(spelled, piece.substr(equals + 1));
    }
    pair.end = spelled.size();
    pairs.push_back(pair);
  }
  const auto name = [&](const Pair& pair) {
    return std::string_view(spelled).substr(pair.begin, pair.name_end - pair.begin);
  };
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](const Pair& a, const Pair& b) { return name(a) < name(b); });
  std::string out;
  out.reserve(spelled.size() + pairs.size());
  for (const auto& pair : pairs) {
    if (!out.empty()) out.push_back('&');
    out.append(spelled, pair.begin, pair.end - pair.begin);
  }
  return out;
}

std::string canonical_authority(std::string_view authority) {
  std::string out(authority.size(), '\0');
  std::transform(authority.begin(), authority.end(), out.begin(), lower);
  const auto colon = out.rfind(':');
  if (colon == std::string::npos || out.find(']', colon) != std::string::npos) return out;
  const std::string_view port = std::string_view(out).substr(colon + 1);
  if (port.empty() || port == "80" || port == "443") out.resize(colon);
  return out;
}

}  // namespace einmal
