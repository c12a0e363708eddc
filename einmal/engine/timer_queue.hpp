#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/engine/scheduler.hpp"

namespace einmal::detail {

class TimerQueue;

/// One timer of an owner that lives as long as its task: set and cancelled without allocation.
/// Destruction cancels.
class Timer {
 public:
  Timer(TimerQueue& queue, std::function<void()> task) : queue_(queue), task_(std::move(task)) {}
  ~Timer() { cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Runs the task at `at` or soon after, never inside this call; replaces what was set before.
  void set(BootTime at);
  void cancel();
  bool is_set() const { return index_ != unset; }

 private:
  friend class TimerQueue;
  static constexpr std::size_t unset = static_cast<std::size_t>(-1);

  TimerQueue& queue_;
  std::function<void()> task_;
  BootTime at_{};
  std::uint64_t order_ = 0;
  std::size_t index_ = unset;
};

/// All timers of an engine on one timer of its scheduler. Nearly all of them (heartbeats,
/// deadlines) are cancelled long before they are due and later than what is armed, so the
/// scheduler hardly hears of them. Equal times run in the order in which they were set.
class TimerQueue {
 public:
  TimerQueue(Scheduler& scheduler, const Clock& clock) : scheduler_(scheduler), clock_(clock) {}
  ~TimerQueue();
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  BootTime now() const { return clock_.boot_now(); }

 private:
  friend class Timer;

  struct Armed {
    Scheduler::Timer timer;
    BootTime at;
  };

  void insert(Timer& timer);
  void remove(Timer& timer);
  void arm();
  void run();
  static bool before(const Timer& a, const Timer& b);
  void place(std::size_t index, Timer* timer);
  void sift_up(std::size_t index);
  void sift_down(std::size_t index);

  Scheduler& scheduler_;
  const Clock& clock_;
  std::vector<Timer*> heap_;
  std::uint64_t orders_ = 0;
  std::optional<Armed> armed_;
  bool running_ = false;
};

}  // namespace einmal::detail
