#pragma once

#include <cstdint>
#include <functional>

#include "einmal/base/clock.hpp"

namespace einmal {

/// The one thread an engine lives on. The gateway adapts its io_context, the simulation its virtual
/// time, a blocking library user a thread of its own.
class Scheduler {
 public:
  using Task = std::function<void()>;
  enum class Timer : std::uint64_t {};

  virtual ~Scheduler() = default;

  /// Runs `task` on the engine's thread, never inside this call. Thread-safe.
  virtual void post(Task task) = 0;
  /// Runs `task` on the engine's thread after `delay` of boot time. Engine's thread only.
  virtual Timer run_after(Duration delay, Task task) = 0;
  /// Forgets a timer; a no-op if it ran. Engine's thread only.
  virtual void cancel(Timer timer) = 0;
};

}  // namespace einmal
