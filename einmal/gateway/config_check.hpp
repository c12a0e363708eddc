#pragma once

#include <string>
#include <vector>

#include "einmal/gateway/config.hpp"

namespace einmal::gateway {

/// What is wrong with one operation by itself: one sentence each, without its name.
std::vector<std::string> problems_of(const OperationConfig& operation);

/// Why two operations cannot stand beside each other; empty if they can.
std::string conflict_between(const OperationConfig& first, const OperationConfig& second);

/// What is wrong with everything that belongs to no operation.
std::vector<std::string> problems_of_rest(const GatewayConfig& config);

}  // namespace einmal::gateway
