#include "einmal/testing/virtual_clock.hpp"

#include <string>
#include <utility>

namespace einmal::testing {

VirtualClock::VirtualClock()
    : wall_(std::chrono::seconds(1'704'067'200)), boot_(std::chrono::seconds(1000)) {}

WallTime VirtualClock::wall_now() const {
  const std::lock_guard lock(mutex_);
  return wall_;
}

BootTime VirtualClock::boot_now() const {
  const std::lock_guard lock(mutex_);
  return boot_;
}

BootId VirtualClock::boot_id() const {
  const std::lock_guard lock(mutex_);
  return *BootId::from_bytes(std::string(15, 'b') + boots_);
}

void VirtualClock::advance(Duration by) {
  {
    const std::lock_guard lock(mutex_);
    wall_ += by;
    boot_ += by;
  }
  changed();
}

void VirtualClock::jump_wall(Duration by) {
  {
    const std::lock_guard lock(mutex_);
    wall_ += by;
  }
  changed();
}

void VirtualClock::reboot() {
  {
    const std::lock_guard lock(mutex_);
    boot_ = BootTime(std::chrono::seconds(1));
    ++boots_;
  }
  changed();
}

void VirtualClock::listen(std::function<void()> listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

void VirtualClock::changed() {
  std::function<void()> listener;
  {
    const std::lock_guard lock(mutex_);
    listener = listener_;
  }
  if (listener) listener();
}

}  // namespace einmal::testing
