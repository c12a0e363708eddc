#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "einmal/base/clock.hpp"

namespace einmal::simulation {

/// Virtual time and everything that happens in it, in one thread. What belongs to a process does
/// not happen while it is stopped (it happens when the process goes on) nor after it was killed.
class Timeline {
 public:
  using Task = std::function<void()>;
  using Ticket = std::uint64_t;
  /// Process 0 is the world itself, which is never stopped.
  using Process = std::size_t;

  explicit Timeline(std::size_t processes) : processes_(processes + 1) {}

  Duration now() const { return now_; }
  Ticket after(Process process, Duration delay, Task task);
  void cancel(Ticket ticket) { cancelled_[ticket] = true; }

  void stop(Process process) { processes_[process].stopped = true; }
  void go_on(Process process);
  bool stopped(Process process) const { return processes_[process].stopped; }
  /// Nothing that was planned for the process so far happens any more.
  void kill(Process process);

  void run_until(Duration end);

 private:
  struct Event {
    Duration at{};
    Ticket ticket = 0;
    Process process = 0;
    std::uint32_t life = 0;
    Task task;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.ticket > b.ticket;
    }
  };
  struct State {
    std::uint32_t life = 0;
    bool stopped = false;
    std::vector<Event> held;
  };

  Duration now_{};
  std::vector<State> processes_;
  std::vector<bool> cancelled_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
};

}  // namespace einmal::simulation
