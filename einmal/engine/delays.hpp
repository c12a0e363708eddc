#pragma once

#include <algorithm>
#include <optional>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"

namespace einmal::detail {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Between low and high, both included.
inline Duration between(Random& random, Duration low, Duration high) {
  return low + Duration(random.below(static_cast<std::uint64_t>((high - low).count()) + 1));
}

/// `base` +-25 %.
inline Duration jittered(Random& random, Duration base) {
  return between(random, base - base / 4, base + base / 4);
}

/// Retry-After of an in-progress answer: the age of the attempt, within 1..10 s and the lease left,
/// +-25 %.
inline Duration in_progress_delay(Random& random, Duration age, std::optional<Duration> left) {
  Duration base = std::min<Duration>(age, seconds(10));
  if (left) base = std::min(base, *left);
  return jittered(random, std::max<Duration>(base, seconds(1)));
}

/// Retry-After where many are turned away at once and must not come back at once.
inline Duration scattered_delay(Random& random) { return between(random, seconds(1), seconds(3)); }

/// Exponential growth from `first` to `longest`, each delay +-25 %.
class Backoff {
 public:
  Backoff(Duration first, Duration longest)
      : first_(std::min(first, longest)), longest_(longest), next_(first_) {}

  Duration next(Random& random) {
    const Duration base = next_;
    next_ = std::min(next_ * 2, longest_);
    return jittered(random, base);
  }
  void reset() { next_ = first_; }

 private:
  Duration first_, longest_, next_;
};

}  // namespace einmal::detail
