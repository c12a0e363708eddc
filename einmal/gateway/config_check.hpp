#pragma once

#include <functional>
#include <string>
#include <vector>

#include "einmal/gateway/config.hpp"

namespace einmal::gateway {

/// One thing that is wrong beyond a single value. `keys` are the settings that it is about, the one
/// to change first: "lease" is a key of an operation, "gateway.listen" one of another table.
struct Finding {
  std::vector<std::string> keys;
  std::string what;
};

/// What is wrong with one operation of this configuration.
std::vector<Finding> findings_in(const OperationConfig& operation, const GatewayConfig& config);

/// Why two operations cannot stand beside each other. `second` is to change.
std::vector<Finding> findings_between(const OperationConfig& first, const OperationConfig& second);

/// What is wrong with everything that belongs to no operation.
std::vector<Finding> findings_in_rest(const GatewayConfig& config);

/// Settings that have no effect as things stand: somebody meant something else. `given` says
/// whether a key such as "caller.map" stands in the file.
std::vector<Finding> findings_without_effect(const GatewayConfig& config,
                                             const std::function<bool(const std::string&)>& given);

}  // namespace einmal::gateway
