#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace einmal::http {

/// ASCII case-insensitive equality, for field names and tokens.
bool iequals(std::string_view a, std::string_view b);
/// Whether `text` begins with `prefix`, ASCII case-insensitively.
bool istarts_with(std::string_view text, std::string_view prefix);
/// `text` without surrounding spaces and tabs (OWS, RFC 9110 section 5.6.3).
std::string_view trim(std::string_view text);
/// A non-empty token (RFC 9110 section 5.6.2): what a method or field name may be.
bool is_token(std::string_view text);
/// What may stand in a field value: no control but tab (RFC 9110 section 5.5), no blank at either
/// end. Check whatever did not come out of a parser before it becomes a header line.
bool is_field_value(std::string_view text);

/// The next element of a comma-separated list, trimmed, taken off `rest`; nothing at the end. Empty
/// elements are passed over. Knows no quoted strings: for lists of tokens only.
std::optional<std::string_view> next_list_element(std::string_view& rest);

/// One field line: name in its own case, value without surrounding white space. A view.
struct HeaderLine {
  std::string_view name;
  std::string_view value;
  friend bool operator==(const HeaderLine&, const HeaderLine&) = default;
};

/// Field lines in wire order. Repeated names stay separate lines; nothing is joined or split.
/// All text lies in one buffer: a head costs two allocations, and `clear` keeps both for the next.
/// Views handed out are valid until the next non-const call.
class HeaderLines {
 public:
  HeaderLines() = default;
  HeaderLines(std::initializer_list<HeaderLine> lines);

  /// The caller vouches for the text: `is_token`, `is_field_value`. Views into this list are fine.
  void add(std::string_view name, std::string_view value);
  /// Removes every line of that name, and adds one at the end.
  void set(std::string_view name, std::string_view value);
  /// Removes every line of that name (case-insensitive); returns how many.
  std::size_t remove(std::string_view name);
  /// Removes every line for which `predicate(HeaderLine)` holds; returns how many.
  template <class Predicate>
  std::size_t remove_if(Predicate predicate) {
    return std::erase_if(spans_, [&](const Span& span) { return predicate(line(span)); });
  }
  void clear();
  void reserve(std::size_t lines, std::size_t bytes);

  /// The value of the first line of that name.
  std::optional<std::string_view> first(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  std::vector<std::string_view> all(std::string_view name) const;
  bool has(std::string_view name) const { return first(name).has_value(); }
  /// Whether a comma-separated list field contains `token` (case-insensitive), over all its lines.
  bool has_token(std::string_view name, std::string_view token) const;

  std::size_t size() const { return spans_.size(); }
  bool empty() const { return spans_.empty(); }
  HeaderLine operator[](std::size_t index) const { return line(spans_[index]); }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = HeaderLine;
    using difference_type = std::ptrdiff_t;
    using pointer = const HeaderLine*;
    using reference = HeaderLine;

    Iterator() = default;
    HeaderLine operator*() const { return (*lines_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++index_;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class HeaderLines;
    Iterator(const HeaderLines* lines, std::size_t index) : lines_(lines), index_(index) {}
    const HeaderLines* lines_ = nullptr;
    std::size_t index_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, spans_.size()}; }

  /// The same lines in the same order, names compared byte by byte.
  friend bool operator==(const HeaderLines& a, const HeaderLines& b);

 private:
  struct Span {
    std::uint32_t at, name_size, value_size;
  };
  HeaderLine line(const Span& span) const {
    const char* name = text_.data() + span.at;
    return {{name, span.name_size}, {name + span.name_size, span.value_size}};
  }

  std::string text_;  // each name directly followed by its value; removed lines leave their text
  std::vector<Span> spans_;
};

struct RequestHead {
  std::string method;  ///< A token in its own case; methods are compared as they are.
  std::string target;  ///< origin-form or "*"; authority-form with CONNECT.
  int version = 11;    ///< 10 or 11
  HeaderLines headers;
  friend bool operator==(const RequestHead&, const RequestHead&) = default;
};

struct ResponseHead {
  int status = 0;
  std::string reason;
  int version = 11;
  HeaderLines headers;
  friend bool operator==(const ResponseHead&, const ResponseHead&) = default;
};

/// `Name: value` CRLF for each line: how stored results keep their head (StoredResult::headers).
std::string serialize(const HeaderLines& headers);
/// The inverse of `serialize`; nothing if the bytes are not such lines.
std::optional<HeaderLines> parse_stored_headers(std::string_view bytes);

}  // namespace einmal::http
