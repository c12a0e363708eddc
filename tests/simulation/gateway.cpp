#include "gateway.hpp"

#include <algorithm>
#include <utility>

namespace einmal::simulation {

using namespace std::chrono_literals;

namespace {

constexpr Duration answer_timeout = 4s;
constexpr Duration late_answer = 12s;

/// Fingerprints of one body under the profile of one gateway; profile 3 is known to its own
/// gateway only.
class Fingerprints final : public FingerprintSource {
 public:
  Fingerprints(int profile, int body)
      : number_(profile),
        body_(body),
        profile_(std::make_shared<const Profile>(profile_of(profile))) {}
  std::shared_ptr<const Profile> profile() const override { return profile_; }
  Fingerprint fingerprint() const override { return fingerprint_of(number_, body_); }
  std::optional<Digest> digest_under(const Profile& profile) const override {
    const int other = profile_number(profile.id);
    if (other == 3 && number_ != 3) return std::nullopt;
    return fingerprint_of(other, body_).digest;
  }

 private:
  const int number_, body_;
  const std::shared_ptr<const Profile> profile_;
};

Policies policies_of(const OperationConfig& config, bool careful) {
  Policies policies;
  if (config.lease > Duration::zero()) policies.lease = config.lease;
  if (config.takeover && !careful) policies.on_lease_expiry = OnLeaseExpiry::takeover;
  policies.retention = config.retention;
  policies.after_expiry = config.refuse ? AfterExpiry::refuse : AfterExpiry::claim_anew;
  policies.tombstone = config.tombstone;
  return policies;
}

StoredResult result_of(const World::Reply& reply) {
  StoredResult result;
  result.status = reply.status;
  result.body = reply.content;
  if (reply.status >= 500) result.effect = Effect::unknown;
  return result;
}

std::string content_of(const RecordPtr& record) {
  return record->result ? record->result->body : std::string();
}

}  // namespace

/// Its own boot clock, and a wall clock that is wrong: nothing may rest on it.
class Gateway::ProcessClock final : public Clock {
 public:
  ProcessClock(const Timeline& timeline, int number) : timeline_(timeline), number_(number) {}
  WallTime wall_now() const override {
    return WallTime(timeline_.now() + std::chrono::hours(10'000 * number_));
  }
  BootTime boot_now() const override {
    return BootTime(timeline_.now() + std::chrono::seconds(1000 * number_));
  }
  BootId boot_id() const override {
    return *BootId::from_bytes(std::string(15, 'g') + static_cast<char>(number_));
  }

 private:
  const Timeline& timeline_;
  const int number_;
};

class Gateway::ProcessScheduler final : public Scheduler {
 public:
  ProcessScheduler(Timeline& timeline, Timeline::Process process)
      : timeline_(timeline), process_(process) {}
  void post(Task task) override { timeline_.after(process_, Duration(1), std::move(task)); }
  Timer run_after(Duration delay, Task task) override {
    return Timer{timeline_.after(process_, delay, std::move(task))};
  }
  void cancel(Timer timer) override { timeline_.cancel(static_cast<std::uint64_t>(timer)); }

 private:
  Timeline& timeline_;
  const Timeline::Process process_;
};

/// Asks the upstream's ledger, over a network that loses one question in ten.
class Gateway::LedgerReconciler final : public Reconciler {
 public:
  explicit LedgerReconciler(Gateway& gateway)
      : gateway_(gateway),
        chance_(stream(gateway.world_.plan.seed, 'l', static_cast<std::uint64_t>(gateway.number_),
                       gateway.lives_)) {}

  std::optional<ReconcileRules> rules(const Scope& scope) override {
    const auto& config = gateway_.world_.plan.scopes[static_cast<std::size_t>(number_of(scope))];
    if (config.quiescence == Duration::zero()) return std::nullopt;
    ReconcileRules rules;
    rules.name = "ledger";
    rules.quiescence = gateway_.world_.mutant.frees_before_quiet ? Duration(1) : config.quiescence;
    rules.longest_delay = 8s;
    return rules;
  }

  void ask(const StoredRecord& record, std::function<void(OutcomeFinding)> done) override {
    Timeline& timeline = gateway_.world_.timeline;
    const Duration there = 1ms + Duration(chance_.below(50'000));
    const Duration back = 1ms + Duration(chance_.below(50'000));
    if (chance_.below(10) == 0) {
      timeline.after(gateway_.process_, 1s, [done] { done({}); });
      return;
    }
    const std::uint64_t life = gateway_.lives_;
    const OperationId operation = record.record.operation_id;
    timeline.after(0, there, [&gateway = gateway_, &timeline, life, operation, back, done] {
      const OutcomeFinding finding = found(gateway.world_, operation);
      if (!gateway.up() || gateway.lives_ != life) return;
      timeline.after(gateway.process_, back, [done, finding] { done(finding); });
    });
  }

 private:
  static OutcomeFinding found(const World& world, const OperationId& operation) {
    OutcomeFinding finding;
    finding.evidence = "the ledger";
    if (const auto entry = world.booked(operation)) {
      finding::Completed completed;
      completed.result.status = 201;
      completed.result.body = *entry;
      finding.what = completed;
    } else {
      finding.what = finding::Absent{};
    }
    return finding;
  }

  Gateway& gateway_;
  SeededRandom chance_;
};

Gateway::Gateway(World& world, int number)
    : world_(world),
      number_(number),
      process_(static_cast<Timeline::Process>(number) + 1),
      clock_(std::make_unique<ProcessClock>(world.timeline, number + 1)),
      scheduler_(std::make_unique<ProcessScheduler>(world.timeline, process_)) {}

Gateway::~Gateway() {
  engine_.reset();
  requests_.clear();
}

// --- the life of the process

void Gateway::start() {
  if (up()) return;
  ++lives_;
  random_ = std::make_unique<SeededRandom>(
      stream(world_.plan.seed, 'r', static_cast<std::uint64_t>(number_), lives_));
  link_ = std::make_unique<StoreLink>(world_, process_, lives_);
  EngineLimits limits;
  limits.store_deadline = 3s;
  limits.live_per_caller = 0;
  limits.uncertain_per_caller = 0;
  engine_ = std::make_unique<Engine>(*link_, *scheduler_, *clock_, *random_, no_observer(), limits);
  engine_->start_sweeping(15s);
  reconciler_ = std::make_unique<LedgerReconciler>(*this);
  engine_->start_reconciling(*reconciler_, "gateway", 1s);
  world_.log("gateway " + std::to_string(number_) + " is up");
}

void Gateway::crash() {
  if (!up()) return;
  world_.log("gateway " + std::to_string(number_) + " is killed");
  world_.timeline.kill(process_);
  engine_.reset();
  requests_.clear();
  link_->process_died();
  links_of_the_dead_.push_back(std::move(link_));
}

void Gateway::shut_down() {
  if (!up()) return;
  world_.log("gateway " + std::to_string(number_) + " shuts down");
  engine_->drain([] {});
  world_.timeline.after(process_, 1s, [this] {
    engine_->stop([this] {
      // Not inside the engine's own call.
      world_.timeline.after(process_, Duration(1), [this] { crash(); });
    });
  });
}

bool Gateway::works_on(const Token& operation) const {
  for (const auto& [number, request] : requests_) {
    if (request.execution && token_of(request.execution->record().operation_id) == operation)
      return true;
  }
  return false;
}

Gateway::Request* Gateway::find(RequestNumber number) {
  const auto found = requests_.find(number);
  return found == requests_.end() ? nullptr : &found->second;
}

// --- a request

void Gateway::receive(const World::Origin& origin) {
  const RequestNumber number = world_.new_request();
  const auto& intents = world_.plan.intents;
  const auto intent = std::find_if(intents.begin(), intents.end(),
                                   [&](const Intent& i) { return i.number == origin.intent; });
  Request& request = requests_[number];
  request.origin = origin;
  request.scope = intent->scope;
  request.body = intent->body;
  request.script = world_.script_for(origin);
  world_.auditor.arrived(number, intent->scope, intent->body, world_.timeline.now());
  world_.log("request " + std::to_string(number) + " (intent " + std::to_string(origin.intent) +
             ") reaches gateway " + std::to_string(number_));
  begin(number);
}

void Gateway::begin(RequestNumber number) {
  Request& request = *find(number);
  const auto& intents = world_.plan.intents;
  const auto intent = std::find_if(intents.begin(), intents.end(), [&](const Intent& i) {
    return i.number == request.origin.intent;
  });
  const OperationConfig& config = world_.plan.scopes[static_cast<std::size_t>(request.scope)];
  const int profile = world_.plan.own_profiles ? number_ + 1 : 1;
  BeginRequest begin{scope_of(request.scope),
                     policies_of(config, intent->careful),
                     intent->waits ? InFlight::wait : InFlight::reject,
                     5s,
                     1s,
                     std::make_shared<Fingerprints>(profile, request.body)};
  link_->on_behalf_of(number);
  request.ticket = engine_->begin(
      std::move(begin), [this, number](Begun begun) { this->begun(number, std::move(begun)); });
  link_->on_behalf_of(std::nullopt);
}

void Gateway::client_gone(const World::Origin& origin) {
  if (!up()) return;
  for (auto& [number, request] : requests_) {
    const bool same =
        request.origin.intent == origin.intent && request.origin.sending == origin.sending;
    if (!same || !request.ticket) continue;
    engine_->drop(*request.ticket);
    return done_with(number);
  }
}

void Gateway::begun(RequestNumber number, Begun begun) {
  Request* request = find(number);
  if (!request) return;
  request->ticket.reset();
  if (auto* execute = std::get_if<begun::Execute>(&begun)) {
    request->execution = std::move(execute->execution);
    world_.timeline.after(process_, request->script.think, [this, number] { send(number); });
    return;
  }
  if (std::holds_alternative<begun::Released>(begun) && world_.mutant.waiter_claims)
    return begin(number);
  answer_begun(number, begun);
  done_with(number);
}

void Gateway::answer_begun(RequestNumber number, const Begun& begun) {
  if (const auto* replay = std::get_if<begun::Replay>(&begun))
    return answer(number, Outcome::success, content_of(replay->record));
  if (std::holds_alternative<begun::Mismatch>(begun)) return answer(number, Outcome::mismatch);
  if (std::holds_alternative<begun::InProgress>(begun) ||
      std::holds_alternative<begun::TooManyWaiters>(begun))
    return answer(number, Outcome::in_progress);
  if (std::holds_alternative<begun::Uncertain>(begun)) return answer(number, Outcome::uncertain);
  if (std::holds_alternative<begun::Gone>(begun)) return answer(number, Outcome::gone);
  if (std::holds_alternative<begun::Released>(begun)) return answer(number, Outcome::released);
  answer(number, Outcome::nothing_happened);
}

// --- to the upstream

void Gateway::send(RequestNumber number) {
  Request& request = *find(number);
  if (request.script.act == Act::unreachable) return give_back(number);
  if (request.execution->may_send() || world_.mutant.sends_without_asking) {
    const Duration checked = world_.timeline.now();
    // Between the look and the first byte the process may be stopped.
    world_.timeline.after(process_, 100us,
                          [this, number, checked] { first_byte(number, checked); });
    return;
  }
  request.execution->reconfirm([this, number](bool ok) {
    Request* again = find(number);
    if (!again) return;
    world_.timeline.after(process_, Duration(1), [this, number, ok] {
      if (ok) return send(number);
      give_back(number);
    });
  });
}

void Gateway::first_byte(RequestNumber number, Duration checked) {
  Request& request = *find(number);
  const Record claimed = request.execution->record();
  const ScopeNumber scope = request.scope;
  const int body = request.body;
  const Script script = request.script;
  world_.auditor.first_byte(scope, einmal::number(claimed.generation), checked);
  world_.log("request " + std::to_string(number) + " is forwarded under generation " +
             std::to_string(einmal::number(claimed.generation)));
  world_.message_leaves(claimed.operation_id);
  // The upstream lives on whatever becomes of this process; its answer does not find a dead one.
  const std::uint64_t life = lives_;
  world_.timeline.after(0, script.there, [=, this] {
    const auto reply = world_.upstream_acts(script.act, scope, body, claimed, number);
    world_.message_arrives(claimed.operation_id);
    if (!up() || lives_ != life) return;
    const bool broken = !reply && script.act != Act::answer_late;
    world_.timeline.after(process_, script.back, [=, this] {
      if (broken) return connection_broke(number);
      if (reply) heard(number, *reply);
    });
  });
  world_.timeline.after(process_, answer_timeout, [this, number] {
    Request* silent = find(number);
    if (silent && !silent->heard_upstream) mark_uncertain(number);
  });
  world_.timeline.after(process_, late_answer, [this, number] {
    Request* silent = find(number);
    if (silent && silent->answered) done_with(number);
  });
}

void Gateway::give_back(RequestNumber number) {
  Request& request = *find(number);
  request.heard_upstream = true;
  request.execution->release(
      [this, number](Finished finished) { this->finished(number, finished, true, ""); });
}

void Gateway::connection_broke(RequestNumber number) {
  Request* request = find(number);
  if (request && !request->heard_upstream) mark_uncertain(number);
}

void Gateway::mark_uncertain(RequestNumber number) {
  Request& request = *find(number);
  if (std::exchange(request.marked, true)) return;
  request.execution->mark_uncertain(
      UncertainCause::outcome_unknown, std::nullopt,
      [this, number](Finished finished) { this->finished(number, finished, false, ""); });
}

void Gateway::heard(RequestNumber number, const World::Reply& reply) {
  Request* request = find(number);
  if (!request || std::exchange(request->heard_upstream, true)) return;
  // While the mark is on its way the late answer waits for it.
  if (request->marked && !request->answered) {
    request->heard_upstream = false;
    world_.timeline.after(process_, 50ms, [this, number, reply] { heard(number, reply); });
    return;
  }
  settle(number, reply);
}

void Gateway::settle(RequestNumber number, const World::Reply& reply) {
  Request& request = *find(number);
  if (reply.released) return give_back(number);
  if (world_.mutant.answers_before_durable && !request.answered)
    answer(number, Outcome::success, reply.content);
  const auto outcome =
      reply.status >= 200 && reply.status < 300 ? event::Final::completed : event::Final::failed;
  request.execution->settle(outcome, result_of(reply), reply.declared,
                            [this, number, content = reply.content](Finished finished) {
                              this->finished(number, finished, false, content);
                            });
}

void Gateway::finished(RequestNumber number, const Finished& finished, bool released,
                       const std::string& content) {
  Request* request = find(number);
  if (!request) return;
  const bool late_answer_may_come = request->marked && !request->heard_upstream;
  if (!request->answered) {
    if (const auto* recorded = std::get_if<finished::Recorded>(&finished)) {
      if (released) {
        answer(number, Outcome::nothing_happened);
      } else if (recorded->record && recorded->record->state != State::uncertain) {
        answer(number, Outcome::success, content_of(recorded->record));
      } else {
        answer(number, Outcome::uncertain);
      }
    } else if (std::holds_alternative<finished::BecameUncertain>(finished)) {
      answer(number, Outcome::uncertain);
    } else if (const auto* lost = std::get_if<finished::Lost>(&finished)) {
      if (lost->record) {
        answer_begun(number, as_duplicate(*lost, request->execution->record()));
      } else {
        answer(number, Outcome::ownership_lost);
      }
    } else if (const auto* unrecorded = std::get_if<finished::Unrecorded>(&finished)) {
      const bool has_outcome = !content.empty() && unrecorded->may_answer;
      answer(number, has_outcome ? Outcome::unrecorded : Outcome::unknown, content);
    }
  }
  if (late_answer_may_come) return;
  // Not inside the execution's own call.
  world_.timeline.after(process_, Duration(1), [this, number] { done_with(number); });
}

void Gateway::answer(RequestNumber number, Outcome outcome, const std::string& content) {
  Request& request = *find(number);
  request.answered = true;
  world_.log("request " + std::to_string(number) + " is answered " + std::string(name(outcome)) +
             (content.empty() ? "" : " " + content));
  world_.auditor.answered(number, outcome, content);
  world_.answer_to_client(request.origin, outcome);
}

}  // namespace einmal::simulation
