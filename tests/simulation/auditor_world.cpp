#include "auditor.hpp"

#include <algorithm>
#include <utility>

/// What the guarantee says of the world: effects, answers, and the way from one to the other.
namespace einmal::simulation {

namespace {

bool holds_outcome(const Picture& p) {
  return p.state == RecordState::completed || p.state == RecordState::failed;
}

}  // namespace

void Auditor::expect(bool holds, std::string_view rule, std::string_view what, ScopeNumber scope) {
  if (holds || violation_) return;
  violation_ =
      Violation{std::string(rule), std::string(what) + " (scope " + std::to_string(scope) + ")"};
}

// --- the store

void Auditor::looked(const Clocks& clocks) {
  const bool comparable = last_look_ && last_look_->boot_number == clocks.boot_number;
  if (comparable) {
    const Duration gain = (clocks.wall - last_look_->wall) - (clocks.boot - last_look_->boot);
    paused_ = gain > std::chrono::seconds(60);
  }
  if (!paused_) last_look_ = clocks;
}

void Auditor::accepted_time(const Clocks& clocks) {
  paused_ = false;
  last_look_ = clocks;
}

void Auditor::step(const StoreStep& s) {
  looked(s.clocks);
  law(scopes_[s.scope].now == s.before, "durability",
      "what the store acknowledged is there until a step changes it", s.scope);
  switch (s.asked) {
    case Asked::claim:
      claim(s);
      break;
    case Asked::renew:
      renew(s);
      break;
    case Asked::complete:
    case Asked::fail:
      settle(s);
      break;
    case Asked::release:
      release(s);
      break;
    case Asked::mark_uncertain:
      mark_uncertain(s);
      break;
    case Asked::abandon:
      abandon(s);
      break;
    case Asked::overdue:
      overdue(s);
      break;
    case Asked::doubt:
      doubt(s);
      break;
    case Asked::resolve:
      resolve(s);
      break;
    case Asked::forget:
      forget(s);
      break;
    case Asked::sweep:
      sweep(s);
      break;
  }
  follow(s);
}

void Auditor::follow(const StoreStep& s) {
  Scope& scope = scopes_[s.scope];
  if (s.said == Said::execute) {
    const auto who = claimants_.find(s.owner);
    expect(s.repeated || who == claimants_.end() || !requests_[who->second].waits, "waiter",
           "who waited for another attempt never becomes the owner", s.scope);
    Operation& operation = operations_[s.after.operation];
    operation.scope = s.scope;
    operation.takeover = s.after.promises.takeover;
    operation.lease = s.after.promises.lease;
  }
  if (s.said == Said::execute || (s.asked == Asked::renew && s.said == Said::ok))
    operations_[s.after.operation].granted[s.after.generation] = s.clocks.world;

  const Picture &was = s.before, &is = s.after;
  const bool left = was.state != RecordState::absent && is.operation != was.operation;
  if (left || (is.state == RecordState::freed && was.state != RecordState::freed)) {
    End& end = operations_[was.operation].end;
    if (s.asked == Asked::release) end = End::released;
    if (s.asked == Asked::forget) end = End::forgotten;
    if (s.asked == Asked::resolve) end = scope.void_ ? End::freed_by_force : End::freed;
    if ((s.asked == Asked::claim || s.asked == Asked::sweep) && holds_outcome(was))
      end = End::expired;
    scope.forgotten = scope.forgotten || end == End::forgotten;
    if (end != End::expired) scope.last_free = s.clocks.world;
    judge_effects(s.scope);
  }
  // A freed key that its own generation settled after all was not free in the end.
  if (was.state == RecordState::freed && holds_outcome(is))
    operations_[was.operation].end = End::open;
  scope.highest_generation = std::max(scope.highest_generation, is.generation);
  if (is.state != RecordState::absent) {
    scope.retention = is.promises.retention;
    if (is.promises.refuse) scope.retention += is.promises.tombstone;
  }
  if (scope.trace.empty() || !(was == is)) scope.trace.push_back({s.clocks.world, is});
  scope.now = is;
}

// --- effects

void Auditor::voided(ScopeNumber scope) { scopes_[scope].void_ = true; }

void Auditor::first_byte(ScopeNumber scope, std::uint64_t generation, Duration checked) {
  const Token operation = [&] {
    for (const Piece& piece : scopes_[scope].trace)
      if (piece.picture.generation == generation) return piece.picture.operation;
    return Token{};
  }();
  const auto found = operations_.find(operation);
  expect(found != operations_.end() && found->second.granted.count(generation), "late forward",
         "only an owner sends, and only after its claim is durable", scope);
  if (found == operations_.end() || !found->second.lease) return;
  expect(checked - found->second.granted[generation] < *found->second.lease, "late forward",
         "the first byte goes out only while the lease cannot be over", scope);
}

void Auditor::effect(ScopeNumber scope, int body, const Token& operation, std::uint64_t generation,
                     RequestNumber request, const std::string& content, Duration world) {
  outcome_made(scope, body, content, world);
  Request& by = requests_[request];
  by.had_effect = true;
  expect(!by.said_nothing_happened, "nothing happened",
         "an effect appeared for a request that was told nothing had happened", scope);
  Scope& s = scopes_[scope];
  const bool may_run_again = operations_[operation].takeover || s.void_ || s.forgotten;
  if (!s.effects.empty() && !wall_clock_set_ && !may_run_again) {
    expect(world - s.effects.back().world >= s.retention, "one effect",
           "two effects of one key within its retention", scope);
  }
  s.effects.push_back({operation, generation, world});
  judge_effects(scope);
}

void Auditor::judge_effects(ScopeNumber number) {
  const Scope& scope = scopes_[number];
  if (scope.void_) return;
  std::map<Token, int> of_operation;
  std::map<std::pair<Token, std::uint64_t>, int> of_attempt;
  for (const Effect& effect : scope.effects) {
    const Operation& operation = operations_[effect.operation];
    expect(++of_attempt[{effect.operation, effect.generation}] == 1, "one effect",
           "one attempt had two effects", number);
    expect(++of_operation[effect.operation] == 1 || operation.takeover, "one effect",
           "one operation had two effects and never chose takeover", number);
    expect(operation.end != End::released && operation.end != End::freed, "outcome",
           "a key was given free although its operation had an effect", number);
  }
}

void Auditor::outcome_made(ScopeNumber scope, int body, const std::string& content,
                           Duration world) {
  outcomes_[content] = {scope, body, world};
}

// --- requests and answers

void Auditor::arrived(RequestNumber request, ScopeNumber scope, int body, Duration world) {
  Request& r = requests_[request];
  r.scope = scope;
  r.body = body;
  r.arrived = world;
}

void Auditor::claims_as(RequestNumber request, const Token& owner) { claimants_[owner] = request; }

void Auditor::heard_in_progress(const Token& owner) {
  const auto who = claimants_.find(owner);
  if (who != claimants_.end()) requests_[who->second].waits = true;
}

/// Whether the store's record of `scope` was, at some moment since `from`, what `holds` says.
template <class Holds>
bool Auditor::some_time(ScopeNumber number, Duration from, Holds holds) const {
  const auto scope = scopes_.find(number);
  if (scope == scopes_.end() || scope->second.trace.empty()) return holds(Picture{});
  const auto& trace = scope->second.trace;
  for (auto piece = trace.rbegin(); piece != trace.rend(); ++piece) {
    if (holds(piece->picture)) return true;
    if (piece->since < from) return false;
  }
  return holds(Picture{});
}

void Auditor::answered(RequestNumber number, Outcome outcome, const std::string& content) {
  Request& request = requests_[number];
  const ScopeNumber scope = request.scope;
  expect(!std::exchange(request.answered, true), "answer", "a request is answered once", scope);
  const auto was = [&](auto holds) { return some_time(scope, request.arrived, holds); };
  const auto in_state = [&](RecordState state) {
    return was([&](const Picture& p) { return p.state == state; });
  };
  const bool gives_outcome = outcome == Outcome::success || outcome == Outcome::unrecorded;
  if (gives_outcome) {
    const auto made = outcomes_.find(content);
    expect(made != outcomes_.end() && made->second.scope == scope, "outcome",
           "an outcome was answered that nobody produced for this key", scope);
    expect(made == outcomes_.end() || made->second.body == request.body, "foreign body",
           "the outcome of another body was answered", scope);
  }
  Scope& s = scopes_[scope];
  switch (outcome) {
    case Outcome::success: {
      expect(was([&](const Picture& p) { return holds_outcome(p) && p.content == content; }),
             "durable before answer", "an outcome was answered that was not durable", scope);
      // Whatever the order in which late answers come out, the two were made that far apart.
      const bool other = s.success && *s.success != content;
      const bool legal = wall_clock_set_ || s.void_ || s.forgotten;
      expect(!other || legal ||
                 std::chrono::abs(outcomes_[content].world - outcomes_[*s.success].world) >=
                     s.retention,
             "replays are equal", "two outcomes were answered for one key within its retention",
             scope);
      s.success = content;
      break;
    }
    case Outcome::unrecorded:
      expect(!was([&](const Picture& p) {
        const auto who = claimants_.find(p.owner);
        const bool own = who != claimants_.end() && who->second == number;
        return own && (p.promises.takeover || p.attempts > 1);
      }),
             "unrecorded", "an unrecorded outcome was passed on where a second forward can exist",
             scope);
      break;
    case Outcome::mismatch:
      expect(was([&](const Picture& p) {
               return p.state != RecordState::absent && p.state != RecordState::freed &&
                      p.body != request.body;
             }),
             "mismatch", "no record of another body was alive", scope);
      break;
    case Outcome::in_progress:
      expect(in_state(RecordState::processing) || in_state(RecordState::completed) ||
                 in_state(RecordState::failed),
             "in progress", "no other attempt was there", scope);
      break;
    case Outcome::uncertain:
      expect(in_state(RecordState::uncertain), "uncertain", "the key was not uncertain", scope);
      break;
    case Outcome::gone:
      expect(was([](const Picture& p) { return holds_outcome(p) && p.promises.refuse; }),
             "tombstone", "no tombstone was there", scope);
      break;
    case Outcome::released:
      expect(request.waits, "released", "only who waited is told that an attempt was released",
             scope);
      expect(s.last_free && *s.last_free >= request.arrived, "released",
             "no attempt ended without effect while it waited", scope);
      request.said_nothing_happened = true;
      break;
    case Outcome::nothing_happened:
      expect(!request.had_effect, "nothing happened",
             "a request that had an effect was told that nothing happened", scope);
      request.said_nothing_happened = true;
      break;
    case Outcome::unknown:
    case Outcome::ownership_lost:
      break;
  }
}

void Auditor::end_of_history(const Clocks& clocks) {
  looked(clocks);
  for (const auto& [number, scope] : scopes_) {
    const Picture& p = scope.now;
    const bool overdue = p.state == RecordState::processing && lease_over(p, clocks);
    expect(!overdue || p.promises.takeover, "overdue",
           "a silent owner's key is still processing long after its lease", number);
    judge_effects(number);
  }
}

}  // namespace einmal::simulation
