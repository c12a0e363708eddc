#include "einmal/engine/timer_queue.hpp"

#include <algorithm>
#include <cassert>

namespace einmal::detail {

void Timer::set(BootTime at) {
  cancel();
  at_ = at;
  queue_.insert(*this);
}

void Timer::cancel() {
  if (is_set()) queue_.remove(*this);
}

TimerQueue::~TimerQueue() {
  assert(heap_.empty());
  if (armed_) scheduler_.cancel(armed_->timer);
}

void TimerQueue::insert(Timer& timer) {
  timer.order_ = ++orders_;
  heap_.push_back(nullptr);
  place(heap_.size() - 1, &timer);
  sift_up(heap_.size() - 1);
  if (!running_) arm();
}

void TimerQueue::remove(Timer& timer) {
  const std::size_t index = timer.index_;
  timer.index_ = Timer::unset;
  Timer* last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  place(index, last);
  sift_up(index);
  sift_down(last->index_);
}

/// Arms the scheduler only for something earlier than what is armed. An armed time whose timer was
/// cancelled runs into nothing and arms what is next then.
void TimerQueue::arm() {
  if (heap_.empty()) return;
  const BootTime at = heap_.front()->at_;
  if (armed_) {
    if (armed_->at <= at) return;
    scheduler_.cancel(armed_->timer);
  }
  const Duration delay = std::max(at - now(), Duration::zero());
  armed_ = Armed{scheduler_.run_after(delay, [this] { run(); }), at};
}

void TimerQueue::run() {
  armed_.reset();
  running_ = true;
  const BootTime due = now();
  // What a task sets for now runs in the next turn, so that a task cannot starve the thread.
  const std::uint64_t last = orders_;
  while (!heap_.empty() && heap_.front()->at_ <= due && heap_.front()->order_ <= last) {
    Timer& timer = *heap_.front();
    remove(timer);
    const auto task = timer.task_;  // the task may destroy its timer
    task();
  }
  running_ = false;
  arm();
}

bool TimerQueue::before(const Timer& a, const Timer& b) {
  return a.at_ != b.at_ ? a.at_ < b.at_ : a.order_ < b.order_;
}

void TimerQueue::place(std::size_t index, Timer* timer) {
  heap_[index] = timer;
  timer->index_ = index;
}

void TimerQueue::sift_up(std::size_t index) {
  Timer* timer = heap_[index];
  while (index > 0) {
    const std::size_t parent = (index - 1) / 2;
    if (!before(*timer, *heap_[parent])) break;
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, timer);
}

void TimerQueue::sift_down(std::size_t index) {
  Timer* timer = heap_[index];
  for (;;) {
    std::size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
    if (!before(*heap_[child], *timer)) break;
    place(index, heap_[child]);
    index = child;
  }
  place(index, timer);
}

}  // namespace einmal::detail
