#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/engine/engine.hpp"
#include "einmal/gateway/buffer.hpp"
#include "einmal/gateway/events.hpp"
#include "einmal/gateway/loop.hpp"
#include "einmal/gateway/settings.hpp"
#include "einmal/http/http_date.hpp"

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

  /// The Date of an answer that we make now (RFC 9110 section 6.6.1).
  std::string_view date() {
    const auto now = std::chrono::floor<std::chrono::seconds>(clock.wall_now());
    if (now != date_second_) {
      date_second_ = now;
      date_ = http::imf_fixdate(now);
    }
    return date_;
  }

  std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds> date_second_{};
  std::string date_;
};

}  // namespace einmal::gateway
