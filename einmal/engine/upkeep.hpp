#pragma once

#include "einmal/engine/desk.hpp"

namespace einmal::detail {

/// What an engine does for its store from time to time: overdue and sweep in bounded batches, and a
/// look at the statistics. Intervals are jittered, so that several processes drift apart.
class Upkeep {
 public:
  explicit Upkeep(Desk& desk);
  ~Upkeep();
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

  void start_sweeping(Duration interval);
  void start_measuring(Duration interval);
  void stop();

 private:
  void find_overdue();
  void sweep();
  void measure();
  void measured(const answer::Stats& stats);
  void pause(Timer& timer, Duration pause) { timer.set(desk_.now() + pause); }

  Desk& desk_;
  Duration sweep_interval_{}, measure_interval_{};
  bool sweep_next_ = false;  ///< The overdue part of this round is done.
  bool expiry_was_paused_ = false;
  Timer sweep_timer_, measure_timer_;
  SmallCall* sweeping_ = nullptr;
  SmallCall* measuring_ = nullptr;
};

}  // namespace einmal::detail
