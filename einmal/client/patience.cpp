#include "einmal/client/patience.hpp"

#include <thread>

namespace einmal::client {

Duration wait_before(int repetition, const Patience& patience,
                     const std::optional<Duration>& retry_after, Random& random) {
  Duration most = std::max(patience.backoff_base, Duration(1));
  for (int i = 1; i < repetition && most < patience.backoff_cap; ++i) most *= 2;
  most = std::min(most, patience.backoff_cap);
  const auto jitter = Duration(
      random.below(static_cast<std::uint64_t>(std::max<std::int64_t>(0, most.count())) + 1));
  return retry_after.value_or(Duration(0)) + jitter;
}

void SystemPause::pause(Duration time) { std::this_thread::sleep_for(time); }

}  // namespace einmal::client
