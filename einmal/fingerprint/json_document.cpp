#include "einmal/fingerprint/json_document.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>

#include "einmal/fingerprint/decimal.hpp"
#include "einmal/fingerprint/json_grammar.hpp"

namespace einmal {

namespace {

using boost::json::error_code;
using boost::json::string_view;

/// Keeps every size within the 28 bits that a node has, also after normalisation (up to three times
/// the bytes).
constexpr std::size_t max_json_bytes = std::size_t{64} << 20;

/// Memory that one unusual body needed is given back.
constexpr std::size_t kept_capacity = std::size_t{1} << 18;

template <class Container>
void empty_out(Container& container) {
  container.clear();
  if (container.capacity() * sizeof(typename Container::value_type) > kept_capacity) {
    container.shrink_to_fit();
  }
}

/// Maps lead bytes so that bytewise order is the order of UTF-16 units: characters beyond U+FFFF
/// (surrogate pairs D800-DFFF) come before U+E000-U+FFFF.
constexpr unsigned char utf16_rank(unsigned char byte) {
  if (byte < 0xee) return byte;
  return byte < 0xf0 ? static_cast<unsigned char>(byte + 0x05)
                     : static_cast<unsigned char>(byte - 0x02);
}

/// Up to eight bytes of `name`, which is followed by `behind` more bytes of memory, as a big-endian
/// number padded with zeros.
std::uint64_t load_prefix(std::string_view name, std::size_t behind) {
  std::uint64_t prefix = 0;
  if (name.size() >= 8 || name.size() + behind >= 8) {
    std::memcpy(&prefix, name.data(), 8);
    prefix = __builtin_bswap64(prefix);
    return name.size() >= 8 ? prefix : prefix & ~(~std::uint64_t{0} >> (8 * name.size()));
  }
  for (std::size_t i = 0; i < name.size(); ++i) {
    prefix |= std::uint64_t{static_cast<unsigned char>(name[i])} << (56 - 8 * i);
  }
  return prefix;
}

std::uint64_t utf16_prefix(std::string_view name, std::size_t behind) {
  const std::uint64_t prefix = load_prefix(name, behind);
  if ((prefix & 0x8080808080808080u) == 0) return prefix;
  std::uint64_t ranked = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    ranked |= std::uint64_t{utf16_rank(static_cast<unsigned char>(prefix >> shift))} << shift;
  }
  return ranked;
}

bool is_ascii(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return (c & 0x80) == 0; });
}

/// Whether a number's exponent, as written, is within bounds.
bool exponent_within_bounds(std::string_view number) {
  std::size_t digits = number.size();
  while (digits > 0 && number[digits - 1] >= '0' && number[digits - 1] <= '9') --digits;
  const std::string_view tail = number.substr(digits);
  if (tail.size() < 10 || digits == 0 || number[digits - 1] == '.') return true;
  if (digits == 1 && number[0] == '-') return true;
  std::int64_t exponent = 0;
  for (const char c : tail) {
    exponent = exponent * 10 + (c - '0');
    if (exponent > max_json_exponent) return false;
  }
  return true;
}

}  // namespace

/// What Boost.JSON's parser reports, as nodes. Errors end the parse; which of them it was is found
/// out by `scan_json`, except duplicate names, which only this class sees.
class JsonHandler {
 public:
  static constexpr std::size_t max_array_size = max_json_bytes;
  static constexpr std::size_t max_object_size = max_json_bytes;
  static constexpr std::size_t max_string_size = max_json_bytes;
  static constexpr std::size_t max_key_size = max_json_bytes;

  JsonHandler(JsonDocument& document, bool nfc) : document_(document), nfc_(nfc) {}

  /// Names the duplicate that ended the parse; empty if something else did.
  const std::string& duplicate() const { return duplicate_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }

  bool on_object_begin(error_code&) {
    open(JsonDocument::Kind::object);
    return add(JsonDocument::Kind::null_value);
  }
  bool on_array_begin(error_code&) { return open(JsonDocument::Kind::array); }
  bool on_array_end(std::size_t count, error_code&) {
    close(count);
    return true;
  }
  bool on_object_end(std::size_t count, error_code& ec) {
    const auto duplicate = document_.close_object(close(count), count);
    if (!duplicate) return true;
    duplicate_ = "member name " + quoted_for_reason(document_.name(*duplicate)) + " twice at " +
                 path_of_closed_object();
    return refuse(ec);
  }

  bool on_key_part(string_view part, std::size_t, error_code&) { return add_part(part); }
  bool on_key(string_view part, std::size_t, error_code&) {
    const auto index = static_cast<std::uint32_t>(document_.nodes_.size());
    const JsonDocument::Node& node = add_text(JsonDocument::Kind::name, part);
    const std::size_t behind =
        node.unescaped() ? 0 : document_.text_.size() - node.value_ - node.size();
    document_.members_.push_back({utf16_prefix(document_.text(node), behind), index});
    return true;
  }
  bool on_string_part(string_view part, std::size_t, error_code&) { return add_part(part); }
  bool on_string(string_view part, std::size_t, error_code&) {
    add_text(JsonDocument::Kind::string, part);
    return true;
  }

  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(std::int64_t, string_view text, error_code&) { return add_number(text); }
  bool on_uint64(std::uint64_t, string_view text, error_code&) { return add_number(text); }
  bool on_double(double, string_view text, error_code& ec) {
    return exponent_within_bounds({text.data(), text.size()}) ? add_number(text) : refuse(ec);
  }
  bool on_bool(bool value, error_code&) {
    return add(value ? JsonDocument::Kind::true_value : JsonDocument::Kind::false_value);
  }
  bool on_null(error_code&) { return add(JsonDocument::Kind::null_value); }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

 private:
  static bool refuse(error_code& ec) {
    ec = boost::json::make_error_code(boost::json::error::syntax);
    return false;
  }

  [[gnu::always_inline]] bool add(JsonDocument::Kind kind, std::uint32_t begin = 0,
                                  std::size_t size = 0, bool unescaped = false) {
    document_.nodes_.push_back({kind, static_cast<std::uint32_t>(size), begin, unescaped});
    return true;
  }

  bool open(JsonDocument::Kind kind) {
    open_[depth_++] = static_cast<std::uint32_t>(document_.nodes_.size());
    return add(kind);
  }

  std::uint32_t close(std::size_t count) {
    const std::uint32_t index = open_[--depth_];
    document_.nodes_[index] = {document_.nodes_[index].kind(), static_cast<std::uint32_t>(count),
                               static_cast<std::uint32_t>(document_.nodes_.size())};
    return index;
  }

  /// The JSON pointer of the object that was closed last. What is before it in the containers that
  /// are still open is closed.
  std::string path_of_closed_object() const {
    std::string path;
    for (std::size_t level = 0; level < depth_; ++level) {
      const std::uint32_t child = open_[level + 1];
      path.push_back('/');
      if (document_.nodes_[open_[level]].kind() == JsonDocument::Kind::object) {
        path.append(printable(pointer_token(document_.name(child - 1)), 40));
        continue;
      }
      std::size_t position = 0;
      for (auto at = open_[level] + 1; at != child; at = document_.next(at)) ++position;
      path.append(std::to_string(position));
    }
    if (path.empty()) return "the top level";
    return path.size() <= 160 ? path : path.substr(0, 157) + "...";
  }

  bool add_number(string_view text) {
    return add(JsonDocument::Kind::number, offset_of(text), text.size());
  }

  bool add_part(string_view part) {
    document_.arena_.append(part.data(), part.size());
    in_parts_ = true;
    return true;
  }

  [[gnu::always_inline]] const JsonDocument::Node& add_text(JsonDocument::Kind kind,
                                                            string_view last) {
    if (!in_parts_ && is_in_text(last) && (!nfc_ || is_ascii({last.data(), last.size()}))) {
      add(kind, offset_of(last), last.size());
    } else {
      add_unescaped(kind, last);
    }
    return document_.nodes_.back();
  }

  void add_unescaped(JsonDocument::Kind kind, string_view last) {
    std::string& arena = document_.arena_;
    arena.append(last.data(), last.size());
    if (nfc_) arena.replace(arena_begin_, std::string::npos, to_nfc(arena.substr(arena_begin_)));
    add(kind, static_cast<std::uint32_t>(arena_begin_), arena.size() - arena_begin_, true);
    arena_begin_ = arena.size();
    in_parts_ = false;
  }

  /// Boost.JSON hands out a view into the text unless it had to unescape into a buffer of its own.
  bool is_in_text(string_view view) const {
    const std::less_equal<const char*> before;
    return before(document_.text_.data(), view.data()) &&
           before(view.data() + view.size(), document_.text_.data() + document_.text_.size());
  }
  std::uint32_t offset_of(string_view view) const {
    return static_cast<std::uint32_t>(view.data() - document_.text_.data());
  }

  JsonDocument& document_;
  const bool nfc_;
  bool in_parts_ = false;
  std::size_t arena_begin_ = 0;
  std::size_t depth_ = 0;
  std::array<std::uint32_t, max_json_depth> open_;
  std::string duplicate_;
};

std::optional<JsonFault> JsonDocument::parse(BytesView text, bool nfc) {
  clear();
  text_ = text;
  if (text.size() > max_json_bytes) return JsonFault{false, "more than 64 MiB"};
  boost::json::parse_options options;
  options.max_depth = max_json_depth;
  boost::json::basic_parser<JsonHandler> parser(options, *this, nfc);
  error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && used == text.size()) return std::nullopt;

  JsonScan scan = scan_json(text);
  if (!scan.follows_grammar) return JsonFault{true, "no JSON by the grammar of RFC 8259"};
  if (!parser.handler().duplicate().empty()) return JsonFault{false, parser.handler().duplicate()};
  if (scan.fault.empty()) scan.fault = "beyond what the parser takes";
  return JsonFault{false, std::move(scan.fault)};
}

void JsonDocument::clear() {
  text_ = {};
  empty_out(nodes_);
  empty_out(sorted_);
  empty_out(members_);
  empty_out(arena_);
}

bool JsonDocument::less(const Member& a, const Member& b) const {
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  return compare_utf16(name(a.name), name(b.name)) < 0;
}

std::optional<std::uint32_t> JsonDocument::close_object(std::uint32_t object, std::size_t count) {
  const auto begin = members_.end() - static_cast<std::ptrdiff_t>(count);
  const auto order = [this](const Member& a, const Member& b) { return less(a, b); };
  if (count <= 16) {
    for (auto unsorted = begin; unsorted != members_.end(); ++unsorted) {
      const Member member = *unsorted;
      auto place = unsorted;
      for (; place != begin && less(member, *(place - 1)); --place) *place = *(place - 1);
      *place = member;
    }
  } else if (!std::is_sorted(begin, members_.end(), order)) {
    std::sort(begin, members_.end(), order);
  }
  nodes_[object + 1].value_ = static_cast<std::uint32_t>(sorted_.size());
  for (auto member = begin; member != members_.end(); ++member) {
    if (member != begin && (member - 1)->prefix == member->prefix &&
        name((member - 1)->name) == name(member->name)) {
      return std::min((member - 1)->name, member->name);
    }
    sorted_.push_back(member->name);
  }
  members_.resize(members_.size() - count);
  return std::nullopt;
}

int compare_utf16(std::string_view a, std::string_view b) {
  const std::size_t common = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i + 64 <= common && std::memcmp(a.data() + i, b.data() + i, 64) == 0) i += 64;
  for (; i < common; ++i) {
    if (a[i] == b[i]) continue;
    return utf16_rank(static_cast<unsigned char>(a[i])) <
                   utf16_rank(static_cast<unsigned char>(b[i]))
               ? -1
               : 1;
  }
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

std::string to_nfc(std::string_view bytes) {
  utf8proc_uint8_t* out = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                   static_cast<utf8proc_ssize_t>(bytes.size()), &out,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(out, &std::free);
  if (size < 0) throw std::bad_alloc();
  return std::string(reinterpret_cast<const char*>(out), static_cast<std::size_t>(size));
}

std::string printable(std::string_view bytes, std::size_t limit) {
  std::string out;
  for (const char c : bytes) {
    if (out.size() >= limit) return out + "...";
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      out.push_back(c);
    } else {
      out.append("\\x").append(to_hex({&c, 1}));
    }
  }
  return out;
}

std::string quoted_for_reason(std::string_view name) { return '"' + printable(name, 48) + '"'; }

std::string pointer_token(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '~') {
      out.append("~0");
    } else if (c == '/') {
      out.append("~1");
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace einmal
