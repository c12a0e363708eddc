#pragma once

#include <functional>
#include <mutex>

#include "einmal/base/clock.hpp"

namespace einmal::testing {

/// Time that moves only when told to. Starts at 2024-01-01 00:00:00 UTC, 1000 s after boot.
/// Thread-safe; listeners run in the thread that moves the clock.
class VirtualClock final : public Clock {
 public:
  VirtualClock();

  WallTime wall_now() const override;
  BootTime boot_now() const override;
  BootId boot_id() const override;

  /// Time passes: both clocks go on.
  void advance(Duration by);
  /// The wall clock alone is set, ahead or (negative) back.
  void jump_wall(Duration by);
  /// Another boot of the machine: the boot clock starts again under a new boot id; the wall clock
  /// stays.
  void reboot();

  /// Calls `listener` after each change, from now on: for a store whose server must be told.
  /// Empty removes it.
  void listen(std::function<void()> listener);

 private:
  void changed();

  mutable std::mutex mutex_;
  WallTime wall_;
  BootTime boot_;
  char boots_ = 1;
  std::function<void()> listener_;
};

}  // namespace einmal::testing
