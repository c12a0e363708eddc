#pragma once

#include <mutex>

#include "einmal/core/clock_guard.hpp"
#include "einmal/core/record.hpp"

namespace einmal::sqlite {

/// The store's clock with its guard against a wall clock that jumps ahead. Thread-safe: the writer
/// and the reader look through one guard.
class StoreClock {
 public:
  /// `kept`: what the file knows of the clock.
  StoreClock(const Clock& clock, const ClockGuard::State& kept) : clock_(clock), guard_(kept) {}

  Now now();
  WallTime wall() const { return clock_.wall_now(); }

  ClockGuard::State state() const;
  /// Takes over what another process (or an earlier one) has kept.
  void adopt(const ClockGuard::State& kept);
  void accept();

 private:
  ClockLook look() const;
  const Clock& clock_;
  mutable std::mutex mutex_;
  ClockGuard guard_;
};

}  // namespace einmal::sqlite
