#pragma once

#include <map>
#include <mutex>
#include <string>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"

/// How much a process asks of a system that fails: bounded exponential backoff with full jitter, a
/// retry budget and a circuit breaker for each dependency.
namespace einmal::workflow {

struct DependencyLimits {
  Duration first_pause = std::chrono::milliseconds(200);
  Duration longest_pause = std::chrono::seconds(60);
  /// Retries in proportion to first attempts (0.2: one in five), and beside them so many a second;
  /// saved up to `most_saved`.
  double retries_per_attempt = 0.2;
  double retries_per_second = 1.0;
  double most_saved = 10.0;
  /// The circuit opens after so many failures in a row, for `open_for` and as much again by chance;
  /// then one attempt decides.
  int failures_to_open = 5;
  Duration open_for = std::chrono::seconds(5);
};

/// Pause before attempt `attempt` + 1: anything from 0 to first * 2^(attempt - 1), at most
/// `longest_pause` ("full jitter", AWS Architecture Blog 2015).
Duration pause_after(int attempt, const DependencyLimits& limits, Random& random);

/// What this process knows of its dependencies. Thread-safe; shared by its workers.
class Dependencies {
 public:
  /// Both must outlive this.
  Dependencies(const Clock& clock, Random& random, DependencyLimits defaults = {});
  /// Before the first worker runs.
  void set(const std::string& name, DependencyLimits limits);

  /// Whether an attempt may be made now. Zero: yes, and `ended` or `withdrawn` must follow.
  /// Otherwise: not before this has passed. `retry`: not the first attempt of its step.
  Duration admit(const std::string& name, bool retry);
  void ended(const std::string& name, bool reached);
  /// Instead of `ended`: the attempt was admitted and not made, so it says nothing.
  void withdrawn(const std::string& name);
  Duration pause(const std::string& name, int attempt);

 private:
  struct Of {
    DependencyLimits limits;
    double saved = 0;
    BootTime refilled{};
    int failures = 0;
    BootTime closed_until{};  ///< While it is open: nothing before this.
    bool probing = false;
  };
  Of& of(const std::string& name);

  const Clock& clock_;
  Random& random_;
  const DependencyLimits defaults_;
  std::mutex mutex_;  // guards the map, and random_ for a Random that is not thread-safe
  std::map<std::string, Of> known_;
};

}  // namespace einmal::workflow
