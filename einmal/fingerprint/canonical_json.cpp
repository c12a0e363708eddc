#include "einmal/fingerprint/canonical_json.hpp"

#include <charconv>
#include <cmath>
#include <optional>

#include "einmal/fingerprint/decimal.hpp"
#include "einmal/fingerprint/json_document.hpp"

namespace einmal {

namespace {

using Node = JsonDocument::Node;
using Kind = JsonDocument::Kind;

/// The double nearest to a JSON number; nothing if it is beyond the range.
std::optional<double> nearest_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc()) return value;
  const Decimal exact = exact_decimal(text);
  const auto digits = static_cast<std::int64_t>(exact.head.size() + exact.tail.size());
  if (exact.exponent + digits > 0) return std::nullopt;
  return 0.0;
}

/// ECMAScript's Number::toString (ECMA-262, 6.1.6.1.20) from the shortest digits that round-trip.
void append_ecmascript(std::string& out, double value) {
  if (value == 0) return out.push_back('0');
  if (std::signbit(value)) out.push_back('-');
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value),
                                 std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<std::size_t>(end.ptr - buffer));
  const auto mark = shortest.find('e');
  std::string digits(shortest.substr(0, mark));
  if (digits.size() > 1) digits.erase(1, 1);  // the decimal point
  int exponent = 0;
  const bool plus = shortest[mark + 1] == '+';
  std::from_chars(buffer + mark + (plus ? 2 : 1), end.ptr, exponent);

  const int k = static_cast<int>(digits.size());
  const int n = exponent + 1;
  if (k <= n && n <= 21) {
    out.append(digits).append(static_cast<std::size_t>(n - k), '0');
  } else if (0 < n && n <= 21) {
    out.append(digits, 0, static_cast<std::size_t>(n)).append(".");
    out.append(digits, static_cast<std::size_t>(n));
  } else if (-6 < n && n <= 0) {
    out.append("0.").append(static_cast<std::size_t>(-n), '0').append(digits);
  } else {
    out.append(digits, 0, 1);
    if (k > 1) out.append(".").append(digits, 1);
    out.append(n > 0 ? "e+" : "e-").append(std::to_string(std::abs(n - 1)));
  }
}

void append_exact(std::string& out, const Decimal& value) {
  if (value.is_zero()) return out.push_back('0');
  if (value.negative) out.push_back('-');
  out.append(value.head).append(value.tail);
  if (value.exponent != 0) out.append("e").append(std::to_string(value.exponent));
}

void append_string(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    static constexpr std::string_view escaped = "\"\\\b\f\n\r\t";
    static constexpr std::string_view letters = "\"\\bfnrt";
    if (const auto at = escaped.find(c); at != std::string_view::npos) {
      out.push_back('\\');
      out.push_back(letters[at]);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out.append("\\u00").append(to_hex({&c, 1}));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

class TextWriter {
 public:
  TextWriter(const JsonDocument& document, JsonNumbers numbers)
      : document_(document), numbers_(numbers) {}

  /// False if a number is beyond the range of a double. Recursion is as deep as the document.
  bool value(std::uint32_t index) {
    const Node& node = document_.node(index);
    switch (node.kind()) {
      case Kind::object:
        return object(index);
      case Kind::array:
        return array(index);
      case Kind::number:
        return number(document_.text(node));
      case Kind::string:
        append_string(out_, document_.text(node));
        return true;
      case Kind::true_value:
        out_.append("true");
        return true;
      case Kind::false_value:
        out_.append("false");
        return true;
      default:
        out_.append("null");
        return true;
    }
  }

  Bytes take() { return std::move(out_); }

 private:
  bool object(std::uint32_t index) {
    out_.push_back('{');
    for (auto* name = document_.sorted_begin(index); name != document_.sorted_end(index); ++name) {
      if (name != document_.sorted_begin(index)) out_.push_back(',');
      append_string(out_, document_.name(*name));
      out_.push_back(':');
      if (!value(*name + 1)) return false;
    }
    out_.push_back('}');
    return true;
  }

  bool array(std::uint32_t index) {
    const std::uint32_t end = document_.next(index);
    out_.push_back('[');
    for (std::uint32_t at = index + 1; at != end; at = document_.next(at)) {
      if (at != index + 1) out_.push_back(',');
      if (!value(at)) return false;
    }
    out_.push_back(']');
    return true;
  }

  bool number(std::string_view text) {
    if (numbers_ == JsonNumbers::exact) {
      append_exact(out_, exact_decimal(text));
      return true;
    }
    const auto value = nearest_double(text);
    if (value) append_ecmascript(out_, *value);
    return value.has_value();
  }

  const JsonDocument& document_;
  const JsonNumbers numbers_;
  Bytes out_;
};

}  // namespace

Result<Bytes> canonical_json(BytesView text, JsonNumbers numbers) {
  JsonDocument document;
  if (const auto fault = document.parse(text, false)) {
    return failure(ErrorCode::invalid, "JSON: " + fault->reason);
  }
  TextWriter writer(document, numbers);
  if (!writer.value(JsonDocument::root)) {
    return failure(ErrorCode::invalid, "JSON: a number beyond the range of a double");
  }
  return writer.take();
}

}  // namespace einmal
