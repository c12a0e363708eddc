#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/gateway/config.hpp"
#include "einmal/gateway/config_tree.hpp"

/// Every key of the configuration file, once: how it is read, within which bounds, and how its
/// value is shown. Reading, the list of known keys, --explain and docs/configuration.md follow
/// from it.

namespace einmal::gateway {

/// Says what is wrong with a value, at its line.
using Complain = std::function<void(const ConfigNode& at, const std::string& what)>;

template <class Config>
struct Setting {
  std::string_view key;
  std::function<void(const ConfigNode&, Config&, const Complain&)> read;
  std::function<std::string(const Config&)> show;  ///< As TOML; "-": not set.
};

/// A table of the file, such as [limits].
struct Section {
  std::string_view name;
  std::vector<Setting<GatewayConfig>> settings;
  /// For tables that may be absent as a whole.
  std::function<void(GatewayConfig&)> make = [](GatewayConfig&) {};
  std::function<bool(const GatewayConfig&)> present = [](const GatewayConfig&) { return true; };
};
const std::vector<Section>& sections();

/// What [[operation]] and [defaults] share.
const std::vector<Setting<OperationConfig>>& operation_settings();
/// What an [[operation]] has of its own: name, title, match.
const std::vector<Setting<OperationConfig>>& own_operation_settings();

}  // namespace einmal::gateway
