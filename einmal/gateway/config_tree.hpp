#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/base/error.hpp"

namespace einmal::gateway {

/// A value of a configuration file with the line it stands on. TOML in our own words, so that its
/// parser is known to one source file.
struct ConfigNode {
  enum class Kind : std::uint8_t { text, integer, number, flag, time, list, table, other };

  Kind kind = Kind::other;
  int line = 0;
  std::string text;               ///< Kind::text
  std::int64_t integer = 0;       ///< Kind::integer
  double number = 0;              ///< Kind::number
  bool flag = false;              ///< Kind::flag
  WallTime time{};                ///< Kind::time: a date and time with its offset.
  std::vector<std::string> keys;  ///< Kind::table: the names of `items`, in the same order.
  std::vector<ConfigNode> items;  ///< Kind::list and Kind::table

  /// The member of a table; nothing if there is none.
  const ConfigNode* member(std::string_view key) const;
};

/// The whole file as one table. Errors: invalid, as `file:line: what`.
Result<ConfigNode> parse_toml(std::string_view text, const std::string& file);

}  // namespace einmal::gateway
