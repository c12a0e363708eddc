#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace einmal::http {

/// ASCII case-insensitive equality, for field names and tokens.
bool iequals(std::string_view a, std::string_view b);

/// One field line as it came: name in its own case, value without surrounding white space.
struct HeaderLine {
  std::string name;
  std::string value;
  friend bool operator==(const HeaderLine&, const HeaderLine&) = default;
};

/// Field lines in wire order. Repeated names stay separate lines; nothing is joined or split.
class HeaderLines {
 public:
  HeaderLines() = default;
  explicit HeaderLines(std::vector<HeaderLine> lines) : lines_(std::move(lines)) {}

  void add(std::string name, std::string value) {
    lines_.push_back({std::move(name), std::move(value)});
  }
  /// Removes every line of that name, and adds one at the end.
  void set(std::string_view name, std::string value);
  /// Removes every line of that name (case-insensitive); returns how many.
  std::size_t remove(std::string_view name);

  /// The value of the first line of that name.
  std::optional<std::string_view> first(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  std::vector<std::string_view> all(std::string_view name) const;
  bool has(std::string_view name) const { return count(name) != 0; }
  /// Whether a comma-separated list field contains `token` (case-insensitive), over all its lines.
  bool has_token(std::string_view name, std::string_view token) const;

  std::vector<HeaderLine>& lines() { return lines_; }
  const std::vector<HeaderLine>& lines() const { return lines_; }
  std::size_t size() const { return lines_.size(); }
  bool empty() const { return lines_.empty(); }
  auto begin() const { return lines_.begin(); }
  auto end() const { return lines_.end(); }

  friend bool operator==(const HeaderLines&, const HeaderLines&) = default;

 private:
  std::vector<HeaderLine> lines_;
};

struct RequestHead {
  std::string method;
  std::string target;  ///< As it came: origin-form, absolute-form, authority-form or "*".
  int version = 11;    ///< 10 or 11
  HeaderLines headers;
};

struct ResponseHead {
  int status = 0;
  std::string reason;
  int version = 11;
  HeaderLines headers;
};

/// `Name: value` CRLF for each line: how stored results keep their head (StoredResult::headers).
std::string serialize(const HeaderLines& headers);
/// The inverse of `serialize`; nothing if the bytes are not such lines.
std::optional<HeaderLines> parse_stored_headers(std::string_view bytes);

}  // namespace einmal::http
