#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "einmal/base/ids.hpp"

namespace einmal {

/// All durations and stored times have microsecond resolution.
using Duration = std::chrono::microseconds;

/// Wall time: microseconds since 1970-01-01 UTC. May jump.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

/// Time since boot that counts suspend (CLOCK_BOOTTIME). Never goes back within one boot;
/// meaningless together with another boot's id.
struct BootClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock, Duration>;
  static constexpr bool is_steady = true;
};
using BootTime = BootClock::time_point;

/// Which boot of which machine a BootTime belongs to.
struct BootIdTag {};
using BootId = Id128<BootIdTag>;

/// Where time comes in. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime wall_now() const = 0;
  virtual BootTime boot_now() const = 0;
  virtual BootId boot_id() const = 0;
};

/// The machine's clocks: CLOCK_REALTIME, CLOCK_BOOTTIME, /proc/sys/kernel/random/boot_id.
class SystemClock final : public Clock {
 public:
  SystemClock();
  WallTime wall_now() const override;
  BootTime boot_now() const override;
  BootId boot_id() const override { return boot_id_; }

 private:
  BootId boot_id_;
};

}  // namespace einmal
