#include "timeline.hpp"

#include <algorithm>
#include <utility>

namespace einmal::simulation {

Timeline::Ticket Timeline::after(Process process, Duration delay, Task task) {
  const Ticket ticket = cancelled_.size();
  cancelled_.push_back(false);
  const Duration at = now_ + std::max(delay, Duration::zero());
  events_.push({at, ticket, process, processes_[process].life, std::move(task)});
  return ticket;
}

void Timeline::go_on(Process process) {
  State& state = processes_[process];
  state.stopped = false;
  for (Event& event : std::exchange(state.held, {})) {
    event.at = now_;
    events_.push(std::move(event));
  }
}

void Timeline::kill(Process process) {
  State& state = processes_[process];
  ++state.life;
  state.stopped = false;
  state.held.clear();
}

void Timeline::run_until(Duration end) {
  while (!events_.empty() && events_.top().at <= end) {
    Event event = std::move(const_cast<Event&>(events_.top()));
    events_.pop();
    now_ = event.at;
    State& state = processes_[event.process];
    if (cancelled_[event.ticket] || state.life != event.life) continue;
    if (state.stopped) {
      state.held.push_back(std::move(event));
    } else {
      event.task();
    }
  }
  now_ = end;
}

}  // namespace einmal::simulation
