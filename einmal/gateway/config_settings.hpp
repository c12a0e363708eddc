#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "einmal/gateway/config_file.hpp"
#include "einmal/gateway/config_schema.hpp"
#include "einmal/gateway/config_text.hpp"

/// The kinds of settings that config_schema.cpp is made of.

namespace einmal::gateway {

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

inline bool all_texts(const ConfigNode& node) {
  return std::all_of(node.items.begin(), node.items.end(),
                     [](const ConfigNode& item) { return item.kind == ConfigNode::Kind::text; });
}

/// Reads the members of a table by `settings`; complains about the others.
template <class Config>
void read_members(const ConfigNode& table, const std::vector<Setting<Config>>& settings,
                  Config& config, const Complain& complain) {
  for (std::size_t i = 0; i < table.keys.size(); ++i) {
    const auto& key = table.keys[i];
    const auto known = std::find_if(settings.begin(), settings.end(),
                                    [&](const auto& each) { return each.key == key; });
    if (known != settings.end()) {
      known->read(table.items[i], config, [&](const ConfigNode& at, const std::string& what) {
        complain(at, key + ": " + what);
      });
      continue;
    }
    std::string names;
    for (const auto& each : settings) names.append(names.empty() ? "" : ", ").append(each.key);
    complain(table.items[i], key + ": no such setting; there are: " + names);
  }
}

/// Builds the list of a table's settings. `access` is a generic lambda that returns a reference to
/// the member, `[](auto& c) -> auto& { return c.member; }`.
template <class Config>
class Settings {
 public:
  template <class Access>
  Settings& duration(std::string_view key, Access access, Duration least, Duration most) {
    return add(
        key,
        [=](const ConfigNode& node, Config& config, const Complain& complain) {
          const auto value = bounded(node, least, most, parse_duration, complain,
                                     [](Duration bound) { return gateway::show(bound); });
          if (value) access(config) = *value;
        },
        [=](const Config& config) { return show_duration(access(config)); });
  }
  template <class Access>
  Settings& size(std::string_view key, Access access, std::size_t least, std::size_t most) {
    return add(
        key,
        [=](const ConfigNode& node, Config& config, const Complain& complain) {
          const auto value = bounded(node, least, most, parse_size, complain, show_size);
          if (value) access(config) = *value;
        },
        [=](const Config& config) { return quoted(show_size(access(config))); });
  }
  template <class Access>
  Settings& count(std::string_view key, Access access, std::int64_t least, std::int64_t most) {
    return add(
        key,
        [=](const ConfigNode& node, Config& config, const Complain& complain) {
          auto& into = access(config);
          if (node.kind == ConfigNode::Kind::integer && node.integer >= least &&
              node.integer <= most) {
            into = static_cast<std::remove_reference_t<decltype(into)>>(node.integer);
          } else {
            complain(node, "a whole number from " + std::to_string(least) + " to " +
                               std::to_string(most) + " is needed, without quotes");
          }
        },
        [=](const Config& config) { return std::to_string(access(config)); });
  }
  template <class Access>
  Settings& flag(std::string_view key, Access access) {
    return add(
        key,
        [=](const ConfigNode& node, Config& config, const Complain& complain) {
          if (node.kind != ConfigNode::Kind::flag) return complain(node, "true or false is needed");
          access(config) = node.flag;
        },
        [=](const Config& config) { return std::string(access(config) ? "true" : "false"); });
  }
  template <class Access>
  Settings& text(std::string_view key, Access access) {
    return add(
        key,
        [=](const ConfigNode& node, Config& config, const Complain& complain) {
          if (node.kind != ConfigNode::Kind::text || node.text.empty()) {
            return complain(node, "a text is needed, in quotes");
          }
          access(config) = node.text;
        },
        [=](const Config& config) { return show_text(access(config)); });
  }
  template <class Access>
  Settings& texts(std::string_view key, Access access) {
    return add(
        key,
        [=](const ConfigNode& node, Config& config, const Complain& complain) {
          if (node.kind != ConfigNode::Kind::list || !all_texts(node)) {
            return complain(node, "a list of texts is needed, such as [\"a\", \"b\"]");
          }
          auto& into = access(config);
          into.clear();
          for (const auto& item : node.items) into.push_back(item.text);
        },
        [=](const Config& config) { return gateway::show(access(config)); });
  }
  template <class Access>
  Settings& text_table(std::string_view key, Access access) {
    return add(
        key,
        [=](const ConfigNode& node, Config& config, const Complain& complain) {
          if (node.kind != ConfigNode::Kind::table || !all_texts(node)) {
            return complain(node, "a table of texts is needed, such as { name = \"value\" }");
          }
          auto& into = access(config);
          into.clear();
          for (std::size_t i = 0; i < node.keys.size(); ++i) {
            into[node.keys[i]] = node.items[i].text;
          }
        },
        [=](const Config& config) { return gateway::show(access(config)); });
  }
  template <class Access, class T>
  Settings& choice(std::string_view key, Access access, std::vector<Choice<T>> choices) {
    return add(
        key,
        [=](const ConfigNode& node, Config& config, const Complain& complain) {
          std::string wanted;
          for (const auto& each : choices) {
            if (node.kind == ConfigNode::Kind::text && node.text == each.name) {
              access(config) = each.value;
              return;
            }
            wanted.append(wanted.empty() ? "\"" : ", \"").append(each.name).append("\"");
          }
          complain(node, "one of " + wanted + " is needed");
        },
        [=](const Config& config) {
          for (const auto& each : choices) {
            if (each.value == access(config)) return quoted(std::string(each.name));
          }
          return std::string("-");
        });
  }
  /// A text that `parse` understands.
  template <class Access, class Parse>
  Settings& parsed(std::string_view key, Access access, Parse parse) {
    return add(
        key,
        [=](const ConfigNode& node, Config& config, const Complain& complain) {
          if (node.kind != ConfigNode::Kind::text)
            return complain(node, "a text is needed, in quotes");
          auto value = parse(node.text);
          if (!value) return complain(node, value.error().message);
          access(config) = std::move(*value);
        },
        [=](const Config& config) { return quoted(gateway::show(access(config))); });
  }
  /// A table within this one, read by `inner` into the member.
  template <class Access, class Inner>
  Settings& table(std::string_view key, Access access, std::vector<Setting<Inner>> inner) {
    return add(
        key,
        [=](const ConfigNode& node, Config& config, const Complain& complain) {
          if (node.kind != ConfigNode::Kind::table) return complain(node, "a table is needed");
          read_members(node, inner, access(config), complain);
        },
        [=](const Config& config) { return show_members(access(config), inner); });
  }
  Settings& add(std::string_view key,
                std::function<void(const ConfigNode&, Config&, const Complain&)> read,
                std::function<std::string(const Config&)> show) {
    list_.push_back({key, std::move(read), std::move(show)});
    return *this;
  }
  std::vector<Setting<Config>> list() { return std::move(list_); }

 private:
  /// Nothing: it was complained about.
  template <class T, class Parse, class Show>
  static std::optional<T> bounded(const ConfigNode& node, T least, T most, Parse parse,
                                  const Complain& complain, Show show) {
    if (node.kind != ConfigNode::Kind::text) {
      complain(node, "a number with its unit is needed, in quotes");
      return std::nullopt;
    }
    const auto value = parse(node.text);
    if (!value) {
      complain(node, value.error().message);
      return std::nullopt;
    }
    if (*value >= least && *value <= most) return *value;
    complain(node, node.text + (*value < least ? " is too small" : " is too large") + ": from " +
                       show(least) + " to " + show(most));
    return std::nullopt;
  }
  static std::string quoted(const std::string& text) { return gateway::show(text); }
  static std::string show_duration(Duration duration) {
    return duration == Duration::zero() ? "-" : quoted(gateway::show(duration));
  }
  static std::string show_duration(const std::optional<Duration>& duration) {
    return duration ? show_duration(*duration) : "-";
  }
  static std::string show_text(const std::string& text) {
    return text.empty() ? "-" : gateway::show(text);
  }
  static std::string show_text(const std::optional<std::string>& text) {
    return text ? gateway::show(*text) : "-";
  }
  template <class Inner>
  static std::string show_members(const Inner& value, const std::vector<Setting<Inner>>& settings) {
    std::string text;
    const Inner unset{};
    for (const auto& each : settings) {
      const auto shown = each.show(value);
      if (shown == each.show(unset)) continue;
      text.append(text.empty() ? "{ " : ", ").append(each.key).append(" = ").append(shown);
    }
    return text.empty() ? "-" : text + " }";
  }

  std::vector<Setting<Config>> list_;
};

}  // namespace einmal::gateway
