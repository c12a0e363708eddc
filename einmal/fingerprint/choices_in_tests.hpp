#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace einmal {

/// Random choices from a list of bytes, so that rapidcheck can shrink what was built from them: a
/// shorter list and smaller bytes make a simpler thing. Where the list ends, every choice is 0.
class Choices {
 public:
  explicit Choices(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

  std::size_t below(std::size_t bound) {
    const std::size_t byte = at_ < bytes_.size() ? bytes_[at_++] : 0;
    return byte % bound;
  }
  bool yes() { return below(2) == 1; }

 private:
  const std::vector<std::uint8_t>& bytes_;
  std::size_t at_ = 0;
};

/// A JSON value as a test thinks of it. Its notion of equality shares no code with the room.
struct ModelJson {
  enum Kind { null, truth, number, text, array, object } kind = null;
  bool yes = false;
  std::int64_t mantissa = 0;  // of a number: mantissa * 10^exponent
  int exponent = 0;
  std::u32string characters;
  std::vector<ModelJson> elements;
  std::vector<std::pair<std::u32string, ModelJson>> members;

  friend bool operator==(const ModelJson& a, const ModelJson& b) {
    if (a.kind != b.kind) return false;
    switch (a.kind) {
      case null:
        return true;
      case truth:
        return a.yes == b.yes;
      case number: {
        const int least = std::min(a.exponent, b.exponent);
        return a.scaled(least) == b.scaled(least);
      }
      case text:
        return a.characters == b.characters;
      case array:
        return a.elements == b.elements;
      default:
        return a.members.size() == b.members.size() &&
               std::is_permutation(a.members.begin(), a.members.end(), b.members.begin());
    }
  }

  /// The digits of the value in units of 10^unit.
  std::string scaled(int unit) const {
    const std::string digits = std::to_string(mantissa);
    return mantissa == 0 ? digits
                         : digits + std::string(static_cast<std::size_t>(exponent - unit), '0');
  }
};

inline std::u32string choose_text(Choices& choices) {
  static constexpr char32_t alphabet[] = {U'a', U'b',  U'\0',     U'"',      U'\\',
                                          U'/', U'\n', U'\u00e9', U'\ufb33', U'\U0001f600'};
  std::u32string text;
  for (std::size_t left = choices.below(4); left != 0; --left) {
    text.push_back(alphabet[choices.below(std::size(alphabet))]);
  }
  return text;
}

inline ModelJson choose_json(Choices& choices, int depth = 3) {
  ModelJson value;
  value.kind = static_cast<ModelJson::Kind>(choices.below(depth == 0 ? 4 : 6));
  if (value.kind == ModelJson::truth) value.yes = choices.yes();
  if (value.kind == ModelJson::number) {
    static constexpr std::int64_t mantissas[] = {
        0, 1, -1, 10, 100, 12, 120, 7, 9007199254740992, 9007199254740993, -9007199254740993};
    value.mantissa = mantissas[choices.below(std::size(mantissas))];
    value.exponent = static_cast<int>(choices.below(7)) - 3;
  }
  if (value.kind == ModelJson::text) value.characters = choose_text(choices);
  if (value.kind == ModelJson::array) {
    for (std::size_t left = choices.below(4); left != 0; --left) {
      value.elements.push_back(choose_json(choices, depth - 1));
    }
  }
  if (value.kind == ModelJson::object) {
    for (std::size_t left = choices.below(5); left != 0; --left) {
      auto name = choose_text(choices);
      const bool taken = std::any_of(value.members.begin(), value.members.end(),
                                     [&](const auto& member) { return member.first == name; });
      if (!taken) value.members.emplace_back(std::move(name), choose_json(choices, depth - 1));
    }
  }
  return value;
}

/// Writes a value in one of its many spellings.
class Speller {
 public:
  explicit Speller(Choices& choices) : choices_(choices) {}

  std::string json(const ModelJson& value) {
    out_.clear();
    spell(value);
    return std::move(out_);
  }

 private:
  void blank() {
    for (std::size_t left = choices_.below(3); left != 0; --left) {
      out_.push_back(" \t\r\n"[choices_.below(4)]);
    }
  }

  void spell(const ModelJson& value) {
    blank();
    switch (value.kind) {
      case ModelJson::null:
        out_ += "null";
        break;
      case ModelJson::truth:
        out_ += value.yes ? "true" : "false";
        break;
      case ModelJson::number:
        number(value);
        break;
      case ModelJson::text:
        text(value.characters);
        break;
      case ModelJson::array:
        out_ += "[";
        for (std::size_t i = 0; i < value.elements.size(); ++i) {
          if (i != 0) out_ += ",";
          spell(value.elements[i]);
        }
        blank();
        out_ += "]";
        break;
      case ModelJson::object:
        object(value);
    }
    blank();
  }

  void object(const ModelJson& value) {
    std::vector<const std::pair<std::u32string, ModelJson>*> order;
    for (const auto& member : value.members) order.push_back(&member);
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[choices_.below(i)]);
    out_ += "{";
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i != 0) out_ += ",";
      blank();
      text(order[i]->first);
      blank();
      out_ += ":";
      spell(order[i]->second);
    }
    blank();
    out_ += "}";
  }

  /// Adds zeros, moves the point and makes up for both in the exponent.
  void number(const ModelJson& value) {
    if (value.mantissa < 0 || (value.mantissa == 0 && choices_.yes())) out_ += "-";
    std::string digits = std::to_string(value.mantissa < 0 ? -value.mantissa : value.mantissa);
    const std::size_t zeros = choices_.below(3);
    int exponent = value.exponent - static_cast<int>(zeros);
    digits.append(zeros, '0');
    const std::size_t fraction = choices_.below(digits.size() + 3);
    while (digits.size() <= fraction) digits.insert(0, "0");
    exponent += static_cast<int>(fraction);
    std::string whole = digits.substr(0, digits.size() - fraction);
    while (whole.size() > 1 && whole[0] == '0') whole.erase(0, 1);
    out_ += whole;
    if (fraction != 0) out_ += "." + digits.substr(digits.size() - fraction);
    if (exponent == 0 && choices_.yes()) return;
    out_ += choices_.yes() ? "e" : "E";
    if (exponent < 0) {
      out_ += "-";
    } else if (choices_.yes()) {
      out_ += "+";
    }
    out_.append(choices_.below(3), '0').append(std::to_string(exponent < 0 ? -exponent : exponent));
  }

  void text(const std::u32string& characters) {
    out_ += '"';
    for (const char32_t c : characters) character(c);
    out_ += '"';
  }

  void character(char32_t c) {
    const bool must = c < 0x20 || c == '"' || c == '\\';
    if (!must && choices_.yes()) return utf8(c);
    static constexpr std::string_view named = "\"\\/\b\f\n\r\t", letters = "\"\\/bfnrt";
    const auto at = c < 0x80 ? named.find(static_cast<char>(c)) : std::string_view::npos;
    if (at != std::string_view::npos && choices_.yes()) {
      out_.append("\\").push_back(letters[at]);
    } else if (c < 0x10000) {
      unit(c);
    } else {
      unit(0xd800 + ((c - 0x10000) >> 10));
      unit(0xdc00 + ((c - 0x10000) & 0x3ff));
    }
  }

  void unit(char32_t u) {
    out_ += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) {
      const char* digits = choices_.yes() ? "0123456789abcdef" : "0123456789ABCDEF";
      out_ += digits[(u >> shift) & 15];
    }
  }

  void utf8(char32_t c) {
    const auto tail = [&](int shift) { out_ += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
    if (c < 0x80) {
      out_ += static_cast<char>(c);
    } else if (c < 0x800) {
      out_ += static_cast<char>(0xc0 | (c >> 6));
      tail(0);
    } else if (c < 0x10000) {
      out_ += static_cast<char>(0xe0 | (c >> 12));
      tail(6);
      tail(0);
    } else {
      out_ += static_cast<char>(0xf0 | (c >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  Choices& choices_;
  std::string out_;
};

}  // namespace einmal
