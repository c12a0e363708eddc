#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "einmal/workflow/workflow_fixture.hpp"

/// Window 10: a dependency is down under many operations. On virtual time, so that half a minute of
/// outage and the recovery are the same in every run; several processes are several Dependencies.
namespace einmal::workflow {
namespace {

struct Outage {
  std::vector<Duration> attempts;             ///< When each call came, since the beginning.
  std::map<std::string, int> calls, effects;  ///< By derived key.
};

class OutageTest : public WorkflowTest, public ::testing::WithParamInterface<int> {
 protected:
  static constexpr int operations = 400;
  static constexpr int processes = 3;

  /// `operations` come within two seconds; the dependency answers nothing for `down`.
  Outage run(Duration down) {
    Outage seen;
    const BootTime began = clock_.boot_now();
    const auto pay =
        external("pay", in_doubt::Resend{},
                 [&](const StepContext& context, OutsideCall& call) -> ExternalOutcome {
                   if (!call.first_byte()) return said::NotNow{*call.nothing_sent()};
                   const Duration at = clock_.boot_now() - began;
                   seen.attempts.push_back(at);
                   ++seen.calls[context.derived_key()];
                   if (at < down) return said::Unknown{"no answer"};
                   seen.effects[context.derived_key()] = 1;  // it deduplicates by the derived key
                   return said::Done{"paid", {}};
                 });
    std::vector<std::unique_ptr<Dependencies>> known;
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < processes; ++i) {
      known.push_back(std::make_unique<Dependencies>(clock_, random_));
      workers.push_back(
          *Worker::make(store_, clock_, random_, *known.back(), {definition_of({pay})}, nullptr));
    }
    int begun = 0;
    for (Duration passed{}; passed < down + 10min; passed += 50ms) {
      for (; begun < operations && passed >= 2s * begun / operations; ++begun)
        start_one("k" + std::to_string(begun));
      for (bool any = true; any;) {
        any = false;
        for (const auto& worker : workers) any = *worker->run_one() || any;
      }
      if (static_cast<int>(seen.effects.size()) == operations) break;
      clock_.advance(50ms);
    }
    return seen;
  }
};

TEST_P(OutageTest, IsMetWithBoundedAttemptsWithoutPeaksAndEndsWithoutDuplicates) {
  const Duration down = std::chrono::seconds(GetParam());
  const Outage seen = run(down);
  ASSERT_EQ(seen.effects.size(), static_cast<std::size_t>(operations));
  for (int i = 0; i < operations; ++i)
    ASSERT_EQ(condition("k" + std::to_string(i)), Condition::completed);

  const auto during = std::count_if(seen.attempts.begin(), seen.attempts.end(),
                                    [&](Duration at) { return at < down; });
  const int most = std::max_element(seen.calls.begin(), seen.calls.end(), [](auto& a, auto& b) {
                     return a.second < b.second;
                   })->second;
  const double amplification = static_cast<double>(seen.attempts.size()) / operations;
  // Attempts in each second of the outage after the circuits have opened.
  std::map<int, int> per_second;
  for (const Duration at : seen.attempts) {
    if (at >= 3s && at < down)
      ++per_second[static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(at).count())];
  }
  int peak = 0;
  for (const auto& [second, count] : per_second) peak = std::max(peak, count);
  std::printf(
      "outage of %d s, %d operations, %d processes: %.2f attempts an operation, at most %d; "
      "%ld attempts while it was down, at most %d in a second; all done %.1f s after it\n",
      GetParam(), operations, processes, amplification, most, static_cast<long>(during), peak,
      std::chrono::duration<double>(*std::max_element(seen.attempts.begin(), seen.attempts.end()) -
                                    down)
          .count());
  // Each process opens its circuit after five failures; from then on one attempt every five to ten
  // seconds tries it. What comes on top is what was begun before.
  const double probes = processes * std::chrono::duration<double>(down).count() / 5.0;
  EXPECT_LE(static_cast<double>(during), processes * 5 + probes + processes);
  EXPECT_LE(peak, processes);
  EXPECT_LE(amplification, 1.5);
  EXPECT_LE(most, 8);
}

TEST_P(OutageTest, IsFollowedByARecoveryThatIsSpreadOut) {
  const Duration down = std::chrono::seconds(GetParam());
  const Outage seen = run(down);
  // In bins of 50 ms, the step of the test: nobody comes back in one bin with everybody else.
  std::map<Duration::rep, int> bins;
  int after = 0;
  for (const Duration at : seen.attempts) {
    if (at < down) continue;
    ++after;
    ++bins[at / 50ms];
  }
  int fullest = 0;
  for (const auto& [bin, count] : bins) fullest = std::max(fullest, count);
  std::printf("recovery from %d s: %d attempts in %zu bins of 50 ms, at most %d in one\n",
              GetParam(), after, bins.size(), fullest);
  EXPECT_LE(fullest, operations / 10);
  EXPECT_GE(bins.size(), 30u);
}

INSTANTIATE_TEST_SUITE_P(Of, OutageTest, ::testing::Values(10, 30));

}  // namespace
}  // namespace einmal::workflow
