#pragma once

#include <algorithm>
#include <optional>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"

namespace einmal::client {

/// How long and how often. One intent's attempts end with whichever is used up first.
struct Patience {
  int max_attempts = 6;
  Duration backoff_base = std::chrono::milliseconds(500);
  Duration backoff_cap = std::chrono::seconds(30);
  Duration deadline = std::chrono::minutes(2);          ///< Overall, from the call on.
  Duration attempt_timeout = std::chrono::seconds(70);  ///< A gateway's answer_timeout is 60 s.
};

/// The wait before the n-th repetition (from 1): full jitter over a capped exponential, after
/// whatever the server asked for. (Brooker, "Exponential Backoff And Jitter", 2015.)
Duration wait_before(int repetition, const Patience& patience,
                     const std::optional<Duration>& retry_after, Random& random);

/// Bounds the repetitions of all intents of one client together, so that an outage is not
/// multiplied: each takes one token, each first attempt gives a tenth of one back.
class RetryBudget {
 public:
  explicit RetryBudget(double capacity) : capacity_(capacity), tokens_(capacity) {}
  void first_attempt() { tokens_ = std::min(capacity_, tokens_ + 0.1); }
  bool take() {
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  double capacity_, tokens_;
};

/// Waits. The seam for virtual time.
class Pause {
 public:
  virtual ~Pause() = default;
  virtual void pause(Duration time) = 0;
};

class SystemPause final : public Pause {
 public:
  void pause(Duration time) override;
};

}  // namespace einmal::client
