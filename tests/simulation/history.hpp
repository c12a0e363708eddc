#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auditor.hpp"
#include "plan.hpp"
#include "world.hpp"

namespace einmal::simulation {

struct Verdict {
  std::optional<Violation> violation;
  std::map<std::string_view, std::uint64_t> rows;
  std::vector<std::string> lines;  ///< What happened, if it was traced.
};

Verdict play(const Plan& plan, const Mutant& mutant = {}, bool trace = false,
             Judged judged = Judged::everything);

/// A plan with fewer faults, intents, tries and gateways that still breaks the same rule.
Plan shrunk(Plan plan, const Mutant& mutant);

/// The shrunk plan, what happened in it, and the rule it breaks: what a person needs.
std::string story(const Plan& plan, const Mutant& mutant);

/// The rules that are broken on purpose.
std::vector<Mutant> all_mutants();

}  // namespace einmal::simulation
