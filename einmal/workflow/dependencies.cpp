#include "einmal/workflow/dependencies.hpp"

#include <algorithm>

namespace einmal::workflow {

namespace {

Duration any_part_of(Duration most, Random& random) {
  return Duration(
      static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(most.count()) + 1)));
}

}  // namespace

Duration pause_after(int attempt, const DependencyLimits& limits, Random& random) {
  Duration most = limits.first_pause;
  for (int i = 1; i < attempt && most < limits.longest_pause; ++i) most *= 2;
  return any_part_of(std::min(most, limits.longest_pause), random);
}

Dependencies::Dependencies(const Clock& clock, Random& random, DependencyLimits defaults)
    : clock_(clock), random_(random), defaults_(defaults) {}

void Dependencies::set(const std::string& name, DependencyLimits limits) {
  const std::lock_guard lock(mutex_);
  known_.erase(name);
  known_.emplace(name, Of{limits, limits.most_saved, clock_.boot_now(), 0, {}, false});
}

Dependencies::Of& Dependencies::of(const std::string& name) {
  const auto [found, added] = known_.try_emplace(name);
  if (added) found->second = {defaults_, defaults_.most_saved, clock_.boot_now(), 0, {}, false};
  return found->second;
}

Duration Dependencies::admit(const std::string& name, bool retry) {
  const std::lock_guard lock(mutex_);
  Of& it = of(name);
  const BootTime now = clock_.boot_now();
  const double seconds = std::chrono::duration<double>(now - it.refilled).count();
  it.refilled = now;
  it.saved = std::min(it.limits.most_saved,
                      it.saved + std::max(0.0, seconds) * it.limits.retries_per_second);

  const bool open = it.failures >= it.limits.failures_to_open;
  if (open && (it.probing || now < it.closed_until)) {
    const Duration left = std::max(Duration::zero(), it.closed_until - now);
    return left + Duration(1) + any_part_of(it.limits.open_for, random_);
  }
  if (retry && !open) {
    if (it.saved < 1) return Duration(1) + any_part_of(it.limits.longest_pause, random_);
    it.saved -= 1;
  } else if (!retry) {
    it.saved = std::min(it.limits.most_saved, it.saved + it.limits.retries_per_attempt);
  }
  it.probing = open;
  return Duration::zero();
}

void Dependencies::ended(const std::string& name, bool reached) {
  const std::lock_guard lock(mutex_);
  Of& it = of(name);
  it.probing = false;
  if (reached) {
    it.failures = 0;
    return;
  }
  it.failures = std::min(it.failures + 1, it.limits.failures_to_open);
  if (it.failures == it.limits.failures_to_open)
    it.closed_until =
        clock_.boot_now() + it.limits.open_for + any_part_of(it.limits.open_for, random_);
}

void Dependencies::withdrawn(const std::string& name) {
  const std::lock_guard lock(mutex_);
  of(name).probing = false;
}

Duration Dependencies::pause(const std::string& name, int attempt) {
  const std::lock_guard lock(mutex_);
  return pause_after(attempt, of(name).limits, random_);
}

}  // namespace einmal::workflow
