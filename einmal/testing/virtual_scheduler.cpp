#include "einmal/testing/virtual_scheduler.hpp"

#include <algorithm>

namespace einmal::testing {

void VirtualScheduler::post(Task task) {
  const std::lock_guard lock(mutex_);
  ++posts_;
  posted_.push_back(std::move(task));
}

Scheduler::Timer VirtualScheduler::run_after(Duration delay, Task task) {
  const std::uint64_t number = ++order_;
  const BootTime at = clock_.boot_now() + std::max(delay, Duration::zero());
  timers_.emplace(Key{at, number}, std::move(task));
  times_.emplace(number, at);
  return static_cast<Timer>(number);
}

void VirtualScheduler::cancel(Timer timer) {
  const auto at = times_.find(static_cast<std::uint64_t>(timer));
  if (at == times_.end()) return;
  timers_.erase(Key{at->second, at->first});
  times_.erase(at);
}

bool VirtualScheduler::run_one() {
  Task task;
  {
    const std::lock_guard lock(mutex_);
    if (posted_.empty()) return false;
    task = std::move(posted_.front());
    posted_.pop_front();
  }
  task();
  return true;
}

bool VirtualScheduler::run_next_timer(BootTime until) {
  if (timers_.empty() || timers_.begin()->first.first > until) return false;
  const auto first = timers_.begin();
  const auto [at, number] = first->first;
  const Task task = std::move(first->second);
  timers_.erase(first);
  times_.erase(number);
  if (at > clock_.boot_now()) clock_.advance(at - clock_.boot_now());
  task();
  return true;
}

void VirtualScheduler::run_ready() {
  while (run_one() || run_next_timer(clock_.boot_now())) {
  }
}

void VirtualScheduler::advance(Duration by) {
  const BootTime until = clock_.boot_now() + by;
  run_ready();
  while (run_next_timer(until)) run_ready();
  if (until > clock_.boot_now()) clock_.advance(until - clock_.boot_now());
}

bool VirtualScheduler::advance_until(const std::function<bool()>& arrived, Duration limit) {
  const BootTime until = clock_.boot_now() + limit;
  run_ready();
  while (!arrived()) {
    if (!run_next_timer(until)) return false;
    run_ready();
  }
  return true;
}

}  // namespace einmal::testing
