#include "durable_store.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace einmal::simulation {

// --- clocks and names

BootId StoreClock::boot_id() const {
  return *BootId::from_bytes(std::string(15, 'b') + static_cast<char>(boots_));
}

void StoreClock::reboot() {
  booted_ = timeline_.now();
  ++boots_;
}

Clocks StoreClock::clocks() const {
  return {timeline_.now(), wall_now().time_since_epoch(), boot_now().time_since_epoch(), boots_};
}

Scope scope_of(ScopeNumber number) {
  return *Scope::make("gateway", "alice", "op", "k" + std::to_string(number));
}

ScopeNumber number_of(const Scope& scope) { return std::stoi(scope.key().substr(1)); }

Profile profile_of(int number) {
  return {fingerprint_of(number, 0).profile, "profile " + std::to_string(number)};
}

Fingerprint fingerprint_of(int profile, int body) {
  Fingerprint fingerprint;
  fingerprint.profile[0] = static_cast<std::uint8_t>(profile);
  fingerprint.digest[0] = static_cast<std::uint8_t>(body);
  fingerprint.digest[1] = static_cast<std::uint8_t>(profile);
  return fingerprint;
}

int profile_number(const Digest& profile) { return profile[0]; }

Token token_of(const OwnerToken& owner) { return *Token::from_bytes(owner.bytes()); }
Token token_of(const OperationId& operation) { return *Token::from_bytes(operation.bytes()); }

namespace {

// --- the auditor's words

RecordState in_words(State state) {
  switch (state) {
    case State::processing:
      return RecordState::processing;
    case State::completed:
      return RecordState::completed;
    case State::failed:
      return RecordState::failed;
    case State::uncertain:
      return RecordState::uncertain;
    case State::freed:
      return RecordState::freed;
  }
  return RecordState::absent;
}

Promises in_words(const Policies& policies) {
  Promises promises;
  promises.lease = policies.lease;
  promises.takeover = policies.on_lease_expiry == OnLeaseExpiry::takeover;
  promises.retention = policies.retention;
  promises.refuse = policies.after_expiry == AfterExpiry::refuse;
  promises.tombstone = policies.tombstone;
  return promises;
}

Picture in_words(const Record& record) {
  Picture p;
  p.state = in_words(record.state);
  p.generation = number(record.generation);
  p.owner = token_of(record.owner);
  p.operation = token_of(record.operation_id);
  p.attempts = record.attempts;
  p.profile = record.fingerprint.profile[0];
  p.body = record.fingerprint.digest[0];
  p.promises = in_words(record.policies);
  if (record.lease) {
    p.lease_end = record.lease->end.time_since_epoch();
    p.lease_boot = record.lease->boot.bytes().back();
  }
  p.by_silence = record.cause == UncertainCause::lease_end;
  p.settled_by_owner = record.settled_by == SettledBy::owner;
  if (record.expires) p.expires = record.expires->time_since_epoch();
  if (record.result) p.content = record.result->body;
  return p;
}

Picture in_words(const std::optional<Record>& record) {
  return record ? in_words(*record) : Picture{};
}

void ask_in_words(StoreStep& s, const event::Claim& e) {
  s.asked = Asked::claim;
  s.owner = token_of(e.owner);
  s.operation = token_of(e.operation_id);
  s.profile = e.fingerprint.profile[0];
  s.body = e.fingerprint.digest[0];
  s.promises = in_words(e.policies);
}
template <class OwnerEvent>
void ask_as_owner(StoreStep& s, const OwnerEvent& e, Asked asked) {
  s.asked = asked;
  s.generation = number(e.generation);
  s.owner = token_of(e.owner);
}
void ask_in_words(StoreStep& s, const event::Renew& e) { ask_as_owner(s, e, Asked::renew); }
void ask_in_words(StoreStep& s, const event::Settle& e) {
  ask_as_owner(s, e, e.outcome == event::Final::completed ? Asked::complete : Asked::fail);
  s.status = e.result.status;
  s.declared = e.declared;
  s.content = e.result.body;
}
void ask_in_words(StoreStep& s, const event::Release& e) { ask_as_owner(s, e, Asked::release); }
void ask_in_words(StoreStep& s, const event::MarkUncertain& e) {
  ask_as_owner(s, e, Asked::mark_uncertain);
}
void ask_in_words(StoreStep& s, const event::Abandon& e) { ask_as_owner(s, e, Asked::abandon); }
void ask_in_words(StoreStep& s, const event::Overdue&) { s.asked = Asked::overdue; }
void ask_in_words(StoreStep& s, const event::Sweep&) { s.asked = Asked::sweep; }
void ask_in_words(StoreStep& s, const event::Doubt& e) {
  s.asked = Asked::doubt;
  s.generation = number(e.generation);
}
void ask_in_words(StoreStep& s, const event::Forget& e) {
  s.asked = Asked::forget;
  s.generation = number(e.generation);
}
void ask_in_words(StoreStep& s, const event::Resolve& e) {
  s.asked = Asked::resolve;
  s.generation = number(e.generation);
  s.force = e.force;
  if (e.to == event::Resolution::completed) s.to = RecordState::completed;
  if (e.to == event::Resolution::failed) s.to = RecordState::failed;
  if (e.to == event::Resolution::freed) s.to = RecordState::freed;
  if (e.result) s.content = e.result->body;
}

void say_in_words(StoreStep& s, const decision::Execute& d) {
  s.said = Said::execute;
  s.takeover = d.takeover;
  s.repeated = d.repeated;
  s.carried = in_words(d.record);
}
template <class Carrying>
void say_carrying(StoreStep& s, Said said, const Carrying& d) {
  s.said = said;
  s.carried = in_words(d.record);
}
void say_in_words(StoreStep& s, const decision::Replay& d) { say_carrying(s, Said::replay, d); }
void say_in_words(StoreStep& s, const decision::Mismatch& d) { say_carrying(s, Said::mismatch, d); }
void say_in_words(StoreStep& s, const decision::OtherProfile&) { s.said = Said::other_profile; }
void say_in_words(StoreStep& s, const decision::InProgress& d) {
  say_carrying(s, Said::in_progress, d);
}
void say_in_words(StoreStep& s, const decision::Uncertain& d) {
  say_carrying(s, Said::uncertain, d);
}
void say_in_words(StoreStep& s, const decision::Gone& d) { say_carrying(s, Said::gone, d); }
void say_in_words(StoreStep& s, const decision::Ok& d) { say_carrying(s, Said::ok, d); }
void say_in_words(StoreStep& s, const decision::BecameUncertain& d) {
  say_carrying(s, Said::became_uncertain, d);
}
void say_in_words(StoreStep& s, const decision::Lost& d) { say_carrying(s, Said::lost, d); }
void say_in_words(StoreStep& s, const decision::Changed& d) { say_carrying(s, Said::changed, d); }
void say_in_words(StoreStep& s, const decision::Unchanged&) { s.said = Said::unchanged; }

/// Answers of the memory store come inside submit.
class Immediate final : public Command {
 public:
  using Command::Command;
  void completed(Result<Answer> answer) noexcept override { answer_.emplace(std::move(answer)); }
  Result<Answer> take() { return std::move(*answer_); }

 private:
  std::optional<Result<Answer>> answer_;
};

MemoryOptions with(Decide decide) {
  MemoryOptions options;
  options.decide = decide;
  return options;
}

}  // namespace

// --- the store

DurableStore::DurableStore(const Timeline& timeline, Auditor& auditor, int scopes, Decide decide,
                           std::function<void(const std::string&)> log)
    : clock_(timeline),
      auditor_(auditor),
      scopes_(scopes),
      log_(std::move(log)),
      random_(1),
      store_(clock_, random_, with(decide)) {}

Result<Answer> DurableStore::ask(Request request) {
  Immediate command(std::move(request));
  store_.submit(command);
  return command.take();
}

Picture DurableStore::look(ScopeNumber scope) {
  auditor_.looked(clock_.clocks());
  const auto answered = ask(request::ReadScope{scope_of(scope), true});
  const auto& found = std::get<answer::Found>(*answered);
  return found.record ? in_words(found.record->record) : Picture{};
}

Result<Answer> DurableStore::run(const Request& request) {
  if (const auto* transition = std::get_if<request::Transition>(&request)) {
    const Picture before = look(number_of(transition->scope));
    Result<Answer> answer = ask(request);
    if (answer) tell(*transition, std::get<Decision>(*answer), before);
    return answer;
  }
  const bool batch = std::holds_alternative<request::Overdue>(request) ||
                     std::holds_alternative<request::Sweep>(request);
  Result<Answer> answer = failure(ErrorCode::internal, "");
  if (batch) {
    run_batch(request, answer);
  } else {
    auditor_.looked(clock_.clocks());
    answer = ask(request);
    if (std::holds_alternative<request::AcceptTime>(request))
      auditor_.accepted_time(clock_.clocks());
  }
  return answer;
}

void DurableStore::tell(const request::Transition& transition, const Decision& decision,
                        const Picture& before) {
  StoreStep s;
  s.clocks = clock_.clocks();
  s.scope = number_of(transition.scope);
  std::visit([&](const auto& e) { ask_in_words(s, e); }, transition.event);
  std::visit([&](const auto& d) { say_in_words(s, d); }, decision);
  s.before = before;
  s.after = look(s.scope);
  judge(s);
}

void DurableStore::judge(const StoreStep& s) {
  const bool idle = s.said == Said::unchanged || s.said == Said::changed;
  if (log_ && !idle) {
    log_("  scope " + std::to_string(s.scope) + ": " + std::string(name(s.asked)) + " -> " +
         std::string(name(s.said)) + ", " + std::string(name(s.after.state)) + " generation " +
         std::to_string(s.after.generation));
  }
  auditor_.step(s);
}

void DurableStore::run_batch(const Request& request, Result<Answer>& answer) {
  std::vector<Picture> before;
  for (int scope = 0; scope < scopes_; ++scope) before.push_back(look(scope));
  answer = ask(request);
  const bool overdue = std::holds_alternative<request::Overdue>(request);
  for (int scope = 0; scope < scopes_; ++scope) {
    StoreStep s;
    s.clocks = clock_.clocks();
    s.scope = scope;
    s.before = before[static_cast<std::size_t>(scope)];
    s.after = look(scope);
    s.asked = overdue ? Asked::overdue : Asked::sweep;
    const bool changed = !(s.before == s.after);
    if (changed) s.said = overdue ? Said::became_uncertain : Said::ok;
    judge(s);
  }
}

}  // namespace einmal::simulation
