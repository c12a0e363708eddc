#pragma once

#include <functional>
#include <memory>
#include <string>

#include "einmal/gateway/core.hpp"

namespace einmal::gateway {

/// One connection of the metrics listener: GET /metrics (the text of `metrics`), /healthz (the loop
/// runs), /readyz (503 while draining).
Async<> serve_admin(Core& core, const std::function<std::string()>& metrics,
                    std::unique_ptr<Stream> stream);

}  // namespace einmal::gateway
