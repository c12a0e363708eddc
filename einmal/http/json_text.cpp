#include "einmal/http/json_text.hpp"

#include <cstddef>

namespace einmal::http {

namespace {

bool in(unsigned char byte, unsigned char low, unsigned char high) {
  return byte >= low && byte <= high;
}

/// Bytes of the well-formed UTF-8 character that begins `text` (Unicode 15, table 3-7); 0: none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  const auto continues = [&](std::size_t i) { return in(byte(i), 0x80, 0xbf); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (in(first, 0xc2, 0xdf)) return continues(1) ? 2 : 0;
  if (in(first, 0xe0, 0xef)) {
    const bool second = in(byte(1), first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return second && continues(2) ? 3 : 0;
  }
  if (in(first, 0xf0, 0xf4)) {
    const bool second = in(byte(1), first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

void append_escaped(std::string& out, unsigned char control) {
  switch (control) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += "0123456789abcdef"[control >> 4];
      out += "0123456789abcdef"[control & 15];
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto size = character_size(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (size == 0) {
      out += "\xef\xbf\xbd";
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += text.front();
    } else if (first < 0x20 || first == 0x7f) {
      append_escaped(out, first);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out += '"';
}

}  // namespace einmal::http
