#include "einmal/gateway/config_tree.hpp"

#include <algorithm>
#include <chrono>

#include <toml++/toml.h>

namespace einmal::gateway {

namespace {

WallTime wall_time(const toml::date_time& value) {
  namespace chr = std::chrono;
  const chr::year_month_day date{chr::year(value.date.year), chr::month(value.date.month),
                                 chr::day(value.date.day)};
  const auto& time = value.time;
  return WallTime(chr::sys_days(date) + chr::hours(time.hour) + chr::minutes(time.minute) +
                  chr::seconds(time.second) + chr::microseconds(time.nanosecond / 1000) -
                  chr::minutes(value.offset->minutes));
}

ConfigNode converted(const toml::node& node);

void take_items(const toml::node& node, ConfigNode& into) {
  if (const auto* list = node.as_array()) {
    into.kind = ConfigNode::Kind::list;
    for (const auto& each : *list) into.items.push_back(converted(each));
  } else if (const auto* table = node.as_table()) {
    into.kind = ConfigNode::Kind::table;
    for (const auto& [key, value] : *table) {
      into.keys.emplace_back(key.str());
      into.items.push_back(converted(value));
    }
  }
}

ConfigNode converted(const toml::node& node) {
  using Kind = ConfigNode::Kind;
  ConfigNode made;
  made.line = static_cast<int>(node.source().begin.line);
  if (const auto text = node.value_exact<std::string>()) {
    made.kind = Kind::text;
    made.text = *text;
  } else if (const auto integer = node.value_exact<std::int64_t>()) {
    made.kind = Kind::integer;
    made.integer = *integer;
  } else if (const auto number = node.value_exact<double>()) {
    made.kind = Kind::number;
    made.number = *number;
  } else if (const auto flag = node.value_exact<bool>()) {
    made.kind = Kind::flag;
    made.flag = *flag;
  } else if (const auto time = node.value_exact<toml::date_time>(); time && time->offset) {
    made.kind = Kind::time;
    made.time = wall_time(*time);
  } else {
    take_items(node, made);
  }
  return made;
}

}  // namespace

const ConfigNode* ConfigNode::member(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

Result<ConfigNode> parse_toml(std::string_view text, const std::string& file) {
  try {
    return converted(toml::parse(text, file));
  } catch (const toml::parse_error& error) {
    return failure(ErrorCode::invalid, file + ":" + std::to_string(error.source().begin.line) +
                                           ": " + std::string(error.description()));
  }
}

}  // namespace einmal::gateway
