#include "einmal/sqlite/store_clock.hpp"

namespace einmal::sqlite {

ClockLook StoreClock::look() const {
  return {clock_.wall_now(), clock_.boot_now(), clock_.boot_id()};
}

Now StoreClock::now() {
  const std::lock_guard lock(mutex_);
  const ClockLook seen = look();
  const bool paused = guard_.look(seen);
  return {seen.wall, seen.boot, seen.boot_id, paused};
}

ClockGuard::State StoreClock::state() const {
  const std::lock_guard lock(mutex_);
  return guard_.state();
}

void StoreClock::adopt(const ClockGuard::State& kept) {
  const std::lock_guard lock(mutex_);
  guard_ = ClockGuard(kept);
}

void StoreClock::accept() {
  const std::lock_guard lock(mutex_);
  guard_.accept(look());
}

}  // namespace einmal::sqlite
