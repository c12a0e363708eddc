#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "history.hpp"

/// Ten thousand histories from a seed, judged by the auditor; and every broken rule seen to be
/// caught. `--seed=N` or EINMAL_SEED begins elsewhere, `--histories=N` or EINMAL_HISTORIES plays
/// more; a single failing one is played again by its seed and `--histories=1`.

namespace einmal::simulation {
namespace {

std::uint64_t first_seed = 1;
std::uint64_t histories = 10'000;

TEST(Simulation, HistoriesKeepTheLawAndReachEveryRowOfTheEventsTable) {
  std::map<std::string_view, std::uint64_t> rows;
  for (std::uint64_t seed = first_seed; seed < first_seed + histories; ++seed) {
    const Plan plan = plan_of(seed);
    const Verdict verdict = play(plan);
    ASSERT_FALSE(verdict.violation) << "replay with --seed=" << seed << " --histories=1\n"
                                    << story(plan, {});
    for (const auto& [row, times] : verdict.rows) rows[row] += times;
  }
  std::cout << histories << " histories from seed " << first_seed << "\n";
  for (const std::string_view row : Auditor::all_rows()) {
    std::cout << "  " << rows[row] << "  " << row << "\n";
    if (histories < 10'000) continue;
    EXPECT_GT(rows[row], 0u) << row << " was never reached";
  }
}

TEST(Simulation, AHistoryIsTheSameEachTimeItIsPlayed) {
  for (std::uint64_t seed = first_seed; seed < first_seed + 20; ++seed) {
    const Plan plan = plan_of(seed);
    EXPECT_EQ(play(plan, {}, true).lines, play(plan, {}, true).lines);
  }
}

class Mutants : public ::testing::TestWithParam<Mutant> {};

/// The first history that gives `mutant` away, and by which rule.
std::optional<std::pair<std::uint64_t, std::string>> caught(const Mutant& mutant, Judged judged) {
  for (std::uint64_t seed = first_seed; seed < first_seed + 10'000; ++seed) {
    const Verdict verdict = play(plan_of(seed), mutant, false, judged);
    if (verdict.violation) return std::pair(seed, verdict.violation->rule);
  }
  return std::nullopt;
}

TEST_P(Mutants, AreCaught) {
  const auto by_the_law = caught(GetParam(), Judged::everything);
  ASSERT_TRUE(by_the_law) << "no history shows it";
  std::cout << "caught in history " << by_the_law->first << " by the rule \"" << by_the_law->second
            << "\"\n";
  if (!GetParam().seen_from_outside) return;
  const auto from_outside = caught(GetParam(), Judged::effects_and_answers);
  ASSERT_TRUE(from_outside) << "its effects and answers do not give it away";
  std::cout << "from outside in history " << from_outside->first << " by the rule \""
            << from_outside->second << "\"\n";
}

INSTANTIATE_TEST_SUITE_P(Simulation, Mutants, ::testing::ValuesIn(all_mutants()),
                         [](const auto& mutant) { return mutant.param.name; });

TEST(Simulation, AFailingHistoryIsShrunkToWhatMatters) {
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.name != "FingerprintIgnored") continue;
    std::uint64_t seed = first_seed;
    while (!play(plan_of(seed), mutant).violation) ++seed;
    const Plan whole = plan_of(seed);
    const Plan smaller = shrunk(whole, mutant);
    ASSERT_TRUE(play(smaller, mutant).violation);
    EXPECT_LE(smaller.intents.size(), 2u);
    EXPECT_LE(smaller.faults.size(), 1u);
    EXPECT_EQ(smaller.gateways, 1);
    EXPECT_NE(story(whole, mutant).find("breaks the rule"), std::string::npos);
    return;
  }
  FAIL() << "the mutant has another name";
}

std::uint64_t number_after(std::string_view argument, std::string_view name,
                           std::uint64_t otherwise) {
  if (!argument.starts_with(name)) return otherwise;
  return std::strtoull(std::string(argument.substr(name.size())).c_str(), nullptr, 10);
}

}  // namespace
}  // namespace einmal::simulation

int main(int argc, char** argv) {
  using namespace einmal::simulation;
  ::testing::InitGoogleTest(&argc, argv);
  if (const char* seed = std::getenv("EINMAL_SEED")) first_seed = std::strtoull(seed, nullptr, 10);
  if (const char* count = std::getenv("EINMAL_HISTORIES"))
    histories = std::strtoull(count, nullptr, 10);
  for (int i = 1; i < argc; ++i) {
    first_seed = number_after(argv[i], "--seed=", first_seed);
    histories = number_after(argv[i], "--histories=", histories);
  }
  return RUN_ALL_TESTS();
}
