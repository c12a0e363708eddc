#include "world.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "gateway.hpp"

namespace einmal::simulation {

using namespace std::chrono_literals;

World::World(const Plan& plan_, const Mutant& mutant_, Judged judged, bool trace)
    : timeline(static_cast<std::size_t>(plan_.gateways)),
      auditor(judged == Judged::everything),
      store(timeline, auditor, static_cast<int>(plan_.scopes.size()), mutant_.decide,
            trace ? [this](const std::string& line) { log(line); }
                  : std::function<void(const std::string&)>()),
      plan(plan_),
      mutant(mutant_),
      trace_(trace) {
  for (int i = 0; i < plan.gateways; ++i) gateways_.push_back(std::make_unique<Gateway>(*this, i));
}

World::~World() = default;

void World::log(const std::string& line) {
  if (!trace_) return;
  std::ostringstream out;
  out.precision(6);
  out << std::fixed << static_cast<double>(timeline.now().count()) / 1e6 << "s  " << line;
  lines_.push_back(out.str());
}

void World::play() {
  for (auto& gateway : gateways_) gateway->start();
  for (const Intent& i : plan.intents) {
    clients_[i.number] = {0, -1, i.tries, i.repeats};
    timeline.after(0, i.at, [this, number = i.number] { send(number); });
  }
  for (const Fault& fault : plan.faults)
    timeline.after(0, fault.at, [this, &fault] { begin(fault); });
  timeline.run_until(plan_length + 60s);
  // Then everything is repaired, and what silence left behind must be found.
  outage_until_ = stall_until_ = doubt_until_ = network_until_ = timeline.now();
  for (auto& gateway : gateways_) {
    if (timeline.stopped(gateway->process())) timeline.go_on(gateway->process());
    gateway->start();
  }
  timeline.run_until(plan_length + 100s);
  auditor.end_of_history(store.clock().clocks());
}

const Intent& World::intent(int number) const {
  return *std::find_if(plan.intents.begin(), plan.intents.end(),
                       [&](const Intent& i) { return i.number == number; });
}

// --- clients and the network between them and the gateways

void World::send(int number) {
  const Intent& intent = this->intent(number);
  Client& client = clients_[number];
  const Origin origin{number, client.sendings++};
  client.waiting_for = origin.sending;
  auto chance = stream(plan.seed, 'c', static_cast<std::uint64_t>(number),
                       static_cast<std::uint64_t>(origin.sending));
  const int to = static_cast<int>(chance.below(gateways_.size()));
  const bool trouble = timeline.now() < network_until_;
  const int copies = trouble && chance.below(3) == 0 ? static_cast<int>(chance.below(2)) * 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    Duration way = 1ms + Duration(chance.below(20'000));
    if (trouble) way += Duration(chance.below(6'000'000));
    timeline.after(0, way, [this, to, origin] {
      Gateway& gateway = *gateways_[static_cast<std::size_t>(to)];
      if (!gateway.up()) return answer_to_client(origin, Outcome::nothing_happened);
      timeline.after(gateway.process(), Duration(1),
                     [&gateway, origin] { gateway.receive(origin); });
    });
  }
  timeline.after(0, intent.patience, [this, number, sending = origin.sending, to] {
    lose_patience(number, sending, to);
  });
}

void World::lose_patience(int number, int sending, int to) {
  if (clients_[number].waiting_for != sending) return;
  Gateway& gateway = *gateways_[static_cast<std::size_t>(to)];
  const Origin origin{number, sending};
  if (gateway.up())
    timeline.after(gateway.process(), 1ms, [&gateway, origin] { gateway.client_gone(origin); });
  heard(number, sending, Outcome::unknown);
}

void World::answer_to_client(const Origin& origin, Outcome outcome) {
  auto chance = stream(plan.seed, 'a', static_cast<std::uint64_t>(origin.intent),
                       static_cast<std::uint64_t>(origin.sending));
  const bool trouble = timeline.now() < network_until_;
  if (trouble && chance.below(3) == 0) return;
  const Duration way = 1ms + Duration(chance.below(trouble ? 6'000'000 : 20'000));
  timeline.after(0, way,
                 [this, origin, outcome] { heard(origin.intent, origin.sending, outcome); });
}

void World::heard(int number, int sending, Outcome outcome) {
  Client& client = clients_[number];
  if (client.waiting_for != sending) return;
  client.waiting_for = -1;
  const bool for_good = outcome == Outcome::success || outcome == Outcome::unrecorded ||
                        outcome == Outcome::mismatch || outcome == Outcome::gone;
  if (for_good) {
    if (client.repeats_left-- > 0) retry(number, intent(number).repeat_after);
    return;
  }
  auto chance = stream(plan.seed, 'b', static_cast<std::uint64_t>(number),
                       static_cast<std::uint64_t>(sending));
  if (--client.tries_left > 0) retry(number, 100ms + Duration(chance.below(3'000'000)));
}

void World::retry(int number, Duration after) {
  timeline.after(0, after, [this, number] { send(number); });
}

// --- the upstream

Script World::script_for(const Origin& origin) {
  auto chance = stream(plan.seed, 'u', static_cast<std::uint64_t>(origin.intent),
                       static_cast<std::uint64_t>(origin.sending));
  Script script;
  const auto trouble = static_cast<std::uint64_t>(plan.trouble);
  if (chance.below(100) < trouble) script.act = static_cast<Act>(1 + chance.below(10));
  const auto slowness = static_cast<std::uint64_t>(plan.slowness);
  if (chance.below(100) < slowness) script.think = Duration(chance.below(10'000'000));
  script.there = 1ms + Duration(chance.below(50'000));
  script.back = 1ms + Duration(chance.below(50'000));
  if (chance.below(100) < slowness) script.there += Duration(chance.below(6'000'000));
  if (script.act == Act::answer_late) script.back += 4s + Duration(chance.below(6'000'000));
  return script;
}

std::string World::fresh(int status) {
  return std::to_string(status) + " #" + std::to_string(next_content_++);
}

std::optional<World::Reply> World::upstream_acts(Act act, ScopeNumber scope, int body,
                                                 const Record& claimed, RequestNumber request) {
  const auto acts = [&](int status) {
    Reply reply{status, fresh(status), false, false};
    auditor.effect(scope, body, token_of(claimed.operation_id), number(claimed.generation), request,
                   reply.content, timeline.now());
    ledger_[token_of(claimed.operation_id)] = reply.content;
    log("request " + std::to_string(request) + " has the effect " + reply.content);
    return reply;
  };
  const auto refuses = [&](int status, bool declared) {
    Reply reply{status, fresh(status), declared, false};
    auditor.outcome_made(scope, body, reply.content, timeline.now());
    return reply;
  };
  switch (act) {
    case Act::commit:
    case Act::answer_late:
      return acts(201);
    case Act::crash_after_effect:
      return acts(500);
    case Act::lose_answer:
    case Act::garble_answer:
      acts(201);
      return std::nullopt;
    case Act::refuse:
      return refuses(402, false);
    case Act::refuse_declared:
      return refuses(402, true);
    case Act::crash_before_effect:
      return refuses(500, false);
    case Act::reject:
      return Reply{503, "", false, true};
    case Act::lose_request:
    case Act::unreachable:
      break;
  }
  return std::nullopt;
}

std::optional<std::string> World::booked(const OperationId& operation) const {
  const auto entry = ledger_.find(token_of(operation));
  return entry == ledger_.end() ? std::nullopt : std::optional(entry->second);
}

// --- faults

void World::begin(const Fault& fault) {
  const auto gateway = [&]() -> Gateway& {
    return *gateways_[static_cast<std::size_t>(fault.which) % gateways_.size()];
  };
  const auto restart = [this, &fault, &gateway] {
    timeline.after(0, fault.lasts, [&g = gateway()] { g.start(); });
  };
  const ScopeNumber scope = fault.which;
  const Duration until = timeline.now() + fault.lasts;
  log("fault " + std::to_string(fault.number));
  switch (fault.kind) {
    case FaultKind::crash:
      gateway().crash();
      return restart();
    case FaultKind::shutdown:
      gateway().shut_down();
      timeline.after(0, fault.lasts + 8s, [&g = gateway()] { g.start(); });
      return;
    case FaultKind::pause:
      timeline.stop(gateway().process());
      timeline.after(0, fault.lasts, [this, p = gateway().process()] { timeline.go_on(p); });
      return;
    case FaultKind::strand_claim:
      strandings_[gateway().process()] = fault.lasts;
      return;
    case FaultKind::outage:
      outage_until_ = until;
      return;
    case FaultKind::stall:
      stall_until_ = until;
      return;
    case FaultKind::doubt:
      doubt_until_ = until;
      return;
    case FaultKind::network:
      network_until_ = until;
      return;
    case FaultKind::wall_clock:
    case FaultKind::wall_clock_back:
      auditor.wall_clock_set();
      return store.clock().set_wall(fault.kind == FaultKind::wall_clock ? fault.lasts
                                                                        : -fault.lasts);
    case FaultKind::reboot:
      if (plan.store_in_process) {
        for (auto& each : gateways_) {
          each->crash();
          timeline.after(0, fault.lasts, [&each] { each->start(); });
        }
      }
      return store.clock().reboot();
    case FaultKind::accept_time:
      return operate(request::AcceptTime{{"operator", ""}});
    case FaultKind::resolve:
    case FaultKind::resolve_by_force:
      return operator_resolves(scope, fault.kind == FaultKind::resolve_by_force,
                               stream(plan.seed, 'o', static_cast<std::uint64_t>(fault.number)));
    case FaultKind::doubt_record:
    case FaultKind::forget:
      break;
  }
  const Generation looked_at{store.look(scope).generation};
  if (number(looked_at) == 0) return;
  const Event event = fault.kind == FaultKind::forget ? Event(event::Forget{looked_at})
                                                      : Event(event::Doubt{looked_at});
  timeline.after(0, fault.lasts, [this, scope, event] {
    operate(request::Transition{scope_of(scope), event, nullptr, {"operator", ""}});
  });
}

Duration World::take_stranding(Timeline::Process process) {
  return std::exchange(strandings_[process], Duration::zero());
}

// --- operators

void World::operate(const Request& request) {
  const auto answer = store.run(request);
  log(std::string("an operator acts") + (answer ? "" : ": " + answer.error().message));
}

bool World::quiescent(const Token& operation) const {
  const auto moving = in_flight_.find(operation);
  if (moving != in_flight_.end() && moving->second > 0) return false;
  for (const auto& gateway : gateways_) {
    if (gateway->works_on(operation)) return false;
  }
  return true;
}

/// Looks now and acts a little later, by the generation it looked at. What the upstream's ledger
/// shows is given as the result; that nothing happened is said only where nothing can happen any
/// more, or by force.
void World::operator_resolves(ScopeNumber scope, bool force, SeededRandom chance) {
  const Picture seen = store.look(scope);
  if (seen.generation == 0) return;
  const Duration thinks = Duration(chance.below(3'000'000));
  const bool frees = chance.below(2) == 0;
  const bool reconciler = chance.below(2) == 0;
  timeline.after(0, thinks, [=, this] {
    event::Resolve resolve;
    resolve.generation = Generation{seen.generation};
    resolve.by = reconciler ? SettledBy::reconciler : SettledBy::operator_;
    resolve.force = force;
    const auto entry = ledger_.find(seen.operation);
    StoredResult result;
    if (entry != ledger_.end()) {
      result.status = 201;
      result.body = entry->second;
      resolve.result = result;
    } else if (force || quiescent(seen.operation)) {
      if (force) auditor.voided(scope);
      resolve.to = frees ? event::Resolution::freed : event::Resolution::failed;
      result.status = 402;
      result.body = fresh(402);
      if (!frees) auditor.outcome_made(scope, seen.body, result.body, timeline.now());
      if (!frees) resolve.result = result;
    } else {
      return;
    }
    operate(request::Transition{scope_of(scope), resolve, nullptr, {"operator", "ledger"}});
  });
}

}  // namespace einmal::simulation
