#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/engine/engine.hpp"
#include "einmal/gateway/buffer.hpp"
#include "einmal/gateway/events.hpp"
#include "einmal/gateway/loop.hpp"
#include "einmal/gateway/settings.hpp"

namespace einmal::gateway {

/// What all connections of one gateway share. Loop's thread only.
struct Core {
  Loop& loop;
  const Clock& clock;
  Random& random;
  Observer& observer;
  GatewayEvents& events;
  Engine& engine;
  /// What a new request follows; one under way keeps what it began with.
  std::shared_ptr<const Settings> settings;
  Budget budget;
  bool draining = false;
  std::size_t connections = 0;
  std::size_t requests = 0;  ///< Under way.
  std::function<void()> request_ended;
};

}  // namespace einmal::gateway
