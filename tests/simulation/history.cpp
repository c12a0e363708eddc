#include "history.hpp"

#include <functional>
#include <utility>

namespace einmal::simulation {

Verdict play(const Plan& plan, const Mutant& mutant, bool trace, Judged judged) {
  World world(plan, mutant, judged, trace);
  world.play();
  return {world.auditor.violation(), world.auditor.rows(), world.lines()};
}

namespace {

/// Tries every simplification once more as long as one of them still breaks the same rule.
class Shrinker {
 public:
  Shrinker(Plan plan, const Mutant& mutant)
      : plan_(std::move(plan)), mutant_(mutant), rule_(play(plan_, mutant_).violation->rule) {}

  Plan run() {
    bool smaller = true;
    while (smaller) {
      smaller = false;
      smaller |= without_elements(&Plan::faults);
      smaller |= without_elements(&Plan::intents);
      for (std::size_t i = 0; i < plan_.intents.size(); ++i) smaller |= simpler_intent(i);
      smaller |= plan_.gateways > 1 && keep([](Plan& p) { --p.gateways; });
      for (std::size_t i = 0; i < plan_.scopes.size(); ++i) {
        smaller |= plan_.scopes[i].quiescence > Duration::zero() &&
                   keep([i](Plan& p) { p.scopes[i].quiescence = Duration::zero(); });
      }
      smaller |= plan_.own_profiles && keep([](Plan& p) { p.own_profiles = false; });
      smaller |= plan_.slowness > 0 && keep([](Plan& p) { p.slowness = 0; });
      smaller |= plan_.trouble > 0 && keep([](Plan& p) { p.trouble = 0; });
    }
    return plan_;
  }

 private:
  bool keep(const std::function<void(Plan&)>& change) {
    Plan changed = plan_;
    change(changed);
    const auto verdict = play(changed, mutant_);
    if (!verdict.violation || verdict.violation->rule != rule_) return false;
    plan_ = std::move(changed);
    return true;
  }

  template <class Element>
  bool without_elements(std::vector<Element> Plan::*list) {
    bool any = false;
    for (std::size_t i = (plan_.*list).size(); i-- > 0;) {
      any |= keep([&](Plan& p) { (p.*list).erase((p.*list).begin() + std::ptrdiff_t(i)); });
    }
    return any;
  }

  bool simpler_intent(std::size_t i) {
    // Looked up each time: a change that is kept replaces the plan.
    const auto intent = [&]() -> const Intent& { return plan_.intents[i]; };
    bool any = false;
    any |= intent().repeats > 0 && keep([&](Plan& p) { --p.intents[i].repeats; });
    any |= intent().tries > 1 && keep([&](Plan& p) { --p.intents[i].tries; });
    any |= intent().waits && keep([&](Plan& p) { p.intents[i].waits = false; });
    any |= intent().careful && keep([&](Plan& p) { p.intents[i].careful = false; });
    any |= intent().body > 1 && keep([&](Plan& p) { p.intents[i].body = 1; });
    return any;
  }

  Plan plan_;
  const Mutant& mutant_;
  const std::string rule_;
};

}  // namespace

Plan shrunk(Plan plan, const Mutant& mutant) { return Shrinker(std::move(plan), mutant).run(); }

std::string story(const Plan& plan, const Mutant& mutant) {
  const Plan smaller = shrunk(plan, mutant);
  const Verdict verdict = play(smaller, mutant, true);
  std::string text = smaller.text();
  for (const std::string& line : verdict.lines) text += "    " + line + "\n";
  return text + "breaks the rule \"" + verdict.violation->rule + "\": " + verdict.violation->what +
         "\n";
}

}  // namespace einmal::simulation
