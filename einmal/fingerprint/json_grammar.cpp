#include "einmal/fingerprint/json_grammar.hpp"

#include <vector>

#include "einmal/fingerprint/decimal.hpp"

namespace einmal {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// A pushdown automaton over the grammar. Every `take_` function moves on past what it names and
/// says whether it was there.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  JsonScan run() {
    if (text_.substr(0, 3) == "\xef\xbb\xbf") {
      note("byte order mark");
      at_ = 3;
    }
    bool good = take_document();
    skip_space();
    good = good && at_ == text_.size();
    return {good, good ? std::move(fault_) : std::string()};
  }

 private:
  bool take_document() {
    for (;;) {
      // A value is due.
      skip_space();
      if (take('[')) {
        open(false);
        skip_space();
        if (!take(']')) continue;
        open_.pop_back();
      } else if (take('{')) {
        open(true);
        skip_space();
        if (!take('}')) {
          if (!take_name()) return false;
          continue;
        }
        open_.pop_back();
      } else if (!take_scalar()) {
        return false;
      }
      // A value is complete: close what it completes, or go on to the next.
      for (;;) {
        if (open_.empty()) return true;
        skip_space();
        if (take(',')) {
          skip_space();
          if (open_.back() && !take_name()) return false;
          break;
        }
        if (!take(open_.back() ? '}' : ']')) return false;
        open_.pop_back();
      }
    }
  }

  bool take_name() {
    if (!take_string()) return false;
    skip_space();
    return take(':');
  }

  bool take_scalar() {
    if (at_ == text_.size()) return false;
    switch (text_[at_]) {
      case '"':
        return take_string();
      case 't':
        return take_word("true");
      case 'f':
        return take_word("false");
      case 'n':
        return take_word("null");
      default:
        return take_number();
    }
  }

  bool take_string() {
    if (!take('"')) return false;
    while (at_ < text_.size()) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c < 0x20) return false;
      if (c == '\\') {
        if (!take_escape()) return false;
      } else if (c < 0x80) {
        ++at_;
      } else if (const std::size_t length = utf8_sequence(text_.substr(at_)); length != 0) {
        at_ += length;
      } else {
        note("invalid UTF-8");
        ++at_;
      }
    }
    return false;
  }

  bool take_escape() {
    const std::size_t begin = at_++;
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    const int unit = take_unit();
    if (unit < 0) return false;
    if (unit >= 0xdc00 && unit <= 0xdfff) note("lone surrogate", begin);
    if (unit < 0xd800 || unit > 0xdbff) return true;
    const std::size_t behind_high = at_;
    if (text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const int low = take_unit();
      if (low < 0) return false;
      if (low >= 0xdc00 && low <= 0xdfff) return true;
      at_ = behind_high;
    }
    note("lone surrogate", begin);
    return true;
  }

  /// Four hex digits, -1 if they are not there.
  int take_unit() {
    if (text_.size() - at_ < 4) return -1;
    int unit = 0;
    for (int i = 0; i < 4; ++i) {
      const int digit = hex_digit(text_[at_++]);
      if (digit < 0) return -1;
      unit = unit * 16 + digit;
    }
    return unit;
  }

  bool take_number() {
    const std::size_t begin = at_;
    take('-');
    if (!take('0') && !take_digits()) return false;
    if (take('.') && !take_digits()) return false;
    if (!take('e') && !take('E')) return true;
    if (!take('+')) take('-');
    const std::size_t digits = at_;
    if (!take_digits()) return false;
    std::int64_t exponent = 0;
    for (std::size_t i = digits; i < at_ && exponent <= max_json_exponent; ++i) {
      exponent = exponent * 10 + (text_[i] - '0');
    }
    if (exponent > max_json_exponent) note("exponent beyond 10^9", begin);
    return true;
  }

  bool take_digits() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ != begin;
  }

  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  void open(bool object) {
    open_.push_back(object);
    if (open_.size() == max_json_depth + 1) {
      note("nesting deeper than " + std::to_string(max_json_depth), at_ - 1);
    }
  }

  void note(std::string what, std::size_t where) {
    if (fault_.empty()) fault_ = std::move(what) + " at byte " + std::to_string(where);
  }
  void note(std::string what) { note(std::move(what), at_); }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<bool> open_;  // true: an object
  std::string fault_;
};

}  // namespace

JsonScan scan_json(std::string_view text) { return Scanner(text).run(); }

std::size_t utf8_sequence(std::string_view text) {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (at(i) & 0xc0) == 0x80; };
  const unsigned c = at(0);
  if (text.empty()) return 0;
  if (c < 0x80) return 1;
  if (c < 0xc2 || c > 0xf4 || !follows(1)) return 0;
  if (c < 0xe0) return 2;
  if ((c == 0xe0 && at(1) < 0xa0) || (c == 0xed && at(1) > 0x9f)) return 0;
  if (!follows(2)) return 0;
  if (c < 0xf0) return 3;
  if ((c == 0xf0 && at(1) < 0x90) || (c == 0xf4 && at(1) > 0x8f)) return 0;
  return follows(3) ? 4 : 0;
}

}  // namespace einmal
