#include "einmal/http/structured_field.hpp"

#include <algorithm>

#include "einmal/http/head.hpp"

namespace einmal::http {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_alpha(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }

/// The parsing algorithms of RFC 8941 section 4.2 over one field value. Each takes what it reads
/// off the front; false: the field is malformed.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  void skip_spaces() {
    while (take(' ')) {
    }
  }
  bool at_end() const { return rest_.empty(); }

  bool string(std::string& out) {
    if (!take('"')) return false;
    while (!rest_.empty()) {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (c == '\\') {
        if (!next_is('"') && !next_is('\\')) return false;
        c = rest_.front();
        rest_.remove_prefix(1);
      } else if (c < 0x20 || c > 0x7e) {
        return false;
      }
      out.push_back(c);
    }
    return false;
  }

  bool parameters() {
    while (take(';')) {
      skip_spaces();
      if (!parameter_name()) return false;
      if (take('=') && !bare_item()) return false;
    }
    return true;
  }

 private:
  bool next_is(char c) const { return !rest_.empty() && rest_.front() == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  template <class Predicate>
  std::size_t take_while(Predicate predicate) {
    const auto* end = std::find_if_not(rest_.begin(), rest_.end(), predicate);
    const auto size = static_cast<std::size_t>(end - rest_.begin());
    rest_.remove_prefix(size);
    return size;
  }

  bool parameter_name() {
    if (rest_.empty() || !(is_lower(rest_.front()) || rest_.front() == '*')) return false;
    take_while([](char c) {
      return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '*';
    });
    return true;
  }

  bool bare_item() {
    if (rest_.empty()) return false;
    const char c = rest_.front();
    if (c == '-' || is_digit(c)) return number();
    if (c == '"') {
      std::string ignored;
      return string(ignored);
    }
    if (c == ':') return byte_sequence();
    if (c == '?') {
      rest_.remove_prefix(1);
      return take('0') || take('1');
    }
    if (!is_alpha(c) && c != '*') return false;
    take_while([](char t) { return is_token({&t, 1}) || t == ':' || t == '/'; });
    return true;
  }

  bool number() {
    take('-');
    const auto whole = take_while(is_digit);
    if (!take('.')) return whole >= 1 && whole <= 15;
    const auto fraction = take_while(is_digit);
    return whole >= 1 && whole <= 12 && fraction >= 1 && fraction <= 3;
  }

  bool byte_sequence() {
    rest_.remove_prefix(1);
    take_while(
        [](char c) { return is_alpha(c) || is_digit(c) || c == '+' || c == '/' || c == '='; });
    return take(':');
  }

  std::string_view rest_;
};

}  // namespace

std::optional<std::string> parse_string_item(std::string_view field) {
  Reader reader(field);
  std::string content;
  reader.skip_spaces();
  if (!reader.string(content) || !reader.parameters()) return std::nullopt;
  reader.skip_spaces();
  if (!reader.at_end()) return std::nullopt;
  return content;
}

}  // namespace einmal::http
