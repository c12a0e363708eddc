#include "einmal/base/clock.hpp"

#include <ctime>
#include <fstream>

namespace einmal {

namespace {

Duration read_clock(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return std::chrono::seconds(ts.tv_sec) +
         std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(ts.tv_nsec));
}

}  // namespace

SystemClock::SystemClock() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  if (std::getline(file, text)) {
    if (auto id = BootId::from_text(text)) boot_id_ = *id;
  }
}

WallTime SystemClock::wall_now() const { return WallTime(read_clock(CLOCK_REALTIME)); }
BootTime SystemClock::boot_now() const { return BootTime(read_clock(CLOCK_BOOTTIME)); }

}  // namespace einmal
