#include "einmal/core/clock_guard.hpp"

namespace einmal {

namespace {

Duration gain(const ClockLook& last, const ClockLook& now) {
  return (now.wall - last.wall) - (now.boot - last.boot);
}

}  // namespace

bool ClockGuard::look(const ClockLook& now) {
  const bool comparable = state_.last && state_.last->boot_id == now.boot_id;
  if (comparable) state_.paused = gain(*state_.last, now) > tolerance;
  if (!state_.paused) state_.last = now;
  return state_.paused;
}

void ClockGuard::accept(const ClockLook& now) { state_ = {now, false}; }

}  // namespace einmal
