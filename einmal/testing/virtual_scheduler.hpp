#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "einmal/engine/scheduler.hpp"
#include "einmal/testing/virtual_clock.hpp"

namespace einmal::testing {

/// A scheduler on virtual time: nothing runs but inside `run_ready` and `advance`, in the thread
/// that calls them, and in the same order every time: posted tasks as they came, timers by their
/// time and then as they were set. `post` may come from any thread (a real store under test).
class VirtualScheduler final : public Scheduler {
 public:
  explicit VirtualScheduler(VirtualClock& clock) : clock_(clock) {}

  void post(Task task) override;
  Timer run_after(Duration delay, Task task) override;
  void cancel(Timer timer) override;

  /// Runs what is posted or due, and what that posts, until nothing is. Time stands still.
  void run_ready();
  /// Lets `by` pass; each timer on the way runs at its own time.
  void advance(Duration by);
  /// Lets time pass from timer to timer until `arrived`, at most `limit`. Whether it arrived.
  bool advance_until(const std::function<bool()>& arrived, Duration limit);

  std::size_t timers() const { return timers_.size(); }
  std::uint64_t posts() const { return posts_; }    ///< Tasks posted so far.
  std::uint64_t armings() const { return order_; }  ///< Timers set so far.

 private:
  using Key = std::pair<BootTime, std::uint64_t>;
  bool run_one();
  bool run_next_timer(BootTime until);

  VirtualClock& clock_;
  std::map<Key, Task> timers_;
  std::map<std::uint64_t, BootTime> times_;  ///< Of timer n.
  std::uint64_t order_ = 0;
  std::uint64_t posts_ = 0;
  std::mutex mutex_;  // guards posted_, posts_
  std::deque<Task> posted_;
};

}  // namespace einmal::testing
