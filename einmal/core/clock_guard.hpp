#pragma once

#include <optional>

#include "einmal/base/clock.hpp"
#include "einmal/core/record.hpp"

namespace einmal {

/// One look at both clocks.
struct ClockLook {
  WallTime wall{};
  BootTime boot{};
  BootId boot_id{};
  friend bool operator==(const ClockLook&, const ClockLook&) = default;
};

/// Notices a wall clock that jumped ahead, so that nothing expires on its word: replaying too long
/// is safe, too short is not.
///
/// When the wall clock has gained more than 60 s on the monotonic clock since the last look, expiry
/// and sweep pause until the two agree again (within 60 s of the last look before the jump) or an
/// operator accepts. A clock that goes back, and one that drifts by less between two looks, is
/// followed. Across a reboot there is nothing to compare with: the guard follows, but a pause stays
/// until it is accepted.
///
/// A value; the store that owns it keeps `state()` where it survives the process, shares it between
/// processes, and looks at least once before each decision. Not thread-safe.
class ClockGuard {
 public:
  static constexpr Duration tolerance = std::chrono::seconds(60);

  struct State {
    std::optional<ClockLook> last;  ///< While paused: the last look before the jump.
    bool paused = false;
    friend bool operator==(const State&, const State&) = default;
  };

  ClockGuard() = default;
  explicit ClockGuard(State kept) : state_(kept) {}

  /// Takes one look; returns whether expiry is paused now.
  bool look(const ClockLook& now);
  /// An operator vouches for the wall clock as it stands.
  void accept(const ClockLook& now);

  const State& state() const { return state_; }

 private:
  State state_;
};

}  // namespace einmal
