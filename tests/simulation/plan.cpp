#include "plan.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace einmal::simulation {

namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 16> fault_names{
    "crash gateway",          "shut down gateway",
    "pause gateway",          "strand the next claim of gateway",
    "store outage",           "store stall",
    "store in doubt",         "network trouble",
    "wall clock ahead",       "wall clock back",
    "reboot the store",       "resolve scope",
    "resolve by force scope", "doubt scope",
    "forget scope",           "accept time"};

class Planner {
 public:
  explicit Planner(std::uint64_t seed) : random_(stream(seed, 'p')) { plan_.seed = seed; }

  Plan make() {
    plan_.gateways = 1 + static_cast<int>(below(3));
    plan_.store_in_process = one_in(2);
    plan_.own_profiles = one_in(4);
    plan_.trouble = static_cast<int>(pick<int>({0, 10, 30, 60}));
    plan_.slowness = pick<int>({5, 20, 50});
    const std::uint64_t scopes = pick<std::uint64_t>({1, 1, 2, 3});
    for (std::uint64_t i = 0; i < scopes; ++i) plan_.scopes.push_back(operation());
    const std::uint64_t intents = 2 + below(6);
    for (std::uint64_t i = 0; i < intents; ++i) plan_.intents.push_back(intent(int(i)));
    const std::uint64_t faults = one_in(4) ? below(3) : below(12);
    for (std::uint64_t i = 0; i < faults; ++i) plan_.faults.push_back(fault(int(i)));
    return plan_;
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + below(choices.size()));
  }
  Duration between(Duration low, Duration high) {
    return low + Duration(below(static_cast<std::uint64_t>((high - low).count()) + 1));
  }

  OperationConfig operation() {
    OperationConfig config;
    if (!one_in(6)) config.lease = pick<Duration>({1s, 2s, 4s, 8s});
    config.takeover = one_in(2);
    config.retention = pick<Duration>({15s, 25s, 40s});
    config.refuse = one_in(3);
    config.tombstone = pick<Duration>({10s, 20s});
    return config;
  }

  Intent intent(int number) {
    Intent intent;
    intent.number = number;
    // Most begin close to another, so that they meet.
    intent.at = number > 0 && !one_in(3) ? plan_.intents.back().at + between(0s, 3s)
                                         : between(0s, plan_length / 2);
    intent.scope = static_cast<int>(below(plan_.scopes.size()));
    intent.body = one_in(6) ? 2 : 1;
    intent.waits = one_in(2);
    intent.careful = one_in(5);
    intent.tries = 1 + static_cast<int>(below(5));
    intent.repeats = static_cast<int>(below(3));
    intent.patience = pick<Duration>({500ms, 3s, 12s});
    intent.repeat_after = pick<Duration>({100ms, 5s, 20s, 45s});
    return intent;
  }

  Fault fault(int number) {
    Fault fault;
    fault.number = number;
    fault.at = between(0s, plan_length);
    // Trouble finds work: half of it comes soon after an intent.
    if (one_in(2)) fault.at = plan_.intents[below(plan_.intents.size())].at + between(0s, 4s);
    fault.kind = static_cast<FaultKind>(below(fault_names.size()));
    const bool of_scope = fault.kind >= FaultKind::resolve;
    const std::uint64_t choices =
        of_scope ? plan_.scopes.size() : static_cast<std::uint64_t>(plan_.gateways);
    fault.which = static_cast<int>(below(choices));
    fault.lasts = pick<Duration>({200ms, 3s, 6s, 12s});
    if (fault.kind == FaultKind::wall_clock || fault.kind == FaultKind::wall_clock_back)
      fault.lasts = pick<Duration>({5s, 50s, 90s, 1h});
    return fault;
  }

  SeededRandom random_;
  Plan plan_;
};

std::string seconds(Duration d) {
  std::ostringstream out;
  out << static_cast<double>(d.count()) / 1e6 << "s";
  return out.str();
}

}  // namespace

SeededRandom stream(std::uint64_t seed, std::uint64_t what, std::uint64_t which,
                    std::uint64_t again) {
  std::uint64_t mixed = seed;
  for (const std::uint64_t part : {what, which, again}) {
    SeededRandom step(mixed ^ (part * 0x9e3779b97f4a7c15u));
    mixed = step.next();
  }
  return SeededRandom(mixed);
}

Plan plan_of(std::uint64_t seed) {
  Plan plan = Planner(seed).make();
  auto chance = stream(seed, 'q');
  for (OperationConfig& scope : plan.scopes) {
    if (chance.below(2) == 0) scope.quiescence = 20s;
  }
  return plan;
}

std::string Plan::text() const {
  std::ostringstream out;
  out << "seed " << seed << ": " << gateways << " gateways on "
      << (store_in_process ? "an embedded store" : "a store server") << ", upstream trouble "
      << trouble << " %, slowness " << slowness << " %"
      << (own_profiles ? ", each gateway under its own profile" : "") << "\n";
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    const OperationConfig& s = scopes[i];
    out << "  scope " << i << ": lease " << (s.lease.count() > 0 ? seconds(s.lease) : "none")
        << (s.takeover ? ", takeover" : "") << ", retention " << seconds(s.retention);
    if (s.refuse) out << ", then refuse for " << seconds(s.tombstone);
    if (s.quiescence.count() > 0) out << ", reconciled, quiet after " << seconds(s.quiescence);
    out << "\n";
  }
  for (const Intent& i : intents) {
    out << "  " << seconds(i.at) << " intent " << i.number << ": scope " << i.scope << " body "
        << i.body << (i.waits ? " waits" : "") << (i.careful ? " careful" : "") << " tries "
        << i.tries << " repeats " << i.repeats << " after " << seconds(i.repeat_after)
        << " patience " << seconds(i.patience) << "\n";
  }
  for (const Fault& f : faults) {
    out << "  " << seconds(f.at) << " fault " << f.number << ": "
        << fault_names[static_cast<std::size_t>(f.kind)] << " " << f.which << " for "
        << seconds(f.lasts) << "\n";
  }
  return out.str();
}

}  // namespace einmal::simulation
