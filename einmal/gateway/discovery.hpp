#pragma once

#include <string>

#include "einmal/gateway/config.hpp"

namespace einmal::gateway {

/// The published contract (`GET /.well-known/idempotency`): for each operation its method and path
/// template, key requirement and limits, retention, in-flight policy and what comes after expiry.
/// JSON; durations in ISO 8601.
std::string discovery_document(const GatewayConfig& config);

/// `P1D`, `PT36H`, `PT90S`: in the largest unit that needs no fraction, of days, hours, minutes and
/// seconds; parts of a second as a decimal fraction.
std::string iso8601(Duration duration);

}  // namespace einmal::gateway
