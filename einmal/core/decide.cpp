#include "einmal/core/decide.hpp"

#include <algorithm>
#include <utility>

namespace einmal {

namespace {

using Change = Step::Change;
using Stored = std::optional<Record>;

Step answer(Decision decision) { return {Change::none, std::nullopt, std::move(decision), {}}; }

template <class Answer>
Step put(Record record, Answer make, std::optional<Audit> audit = std::nullopt) {
  Decision decision = make(record);
  return {Change::put, std::move(record), std::move(decision), std::move(audit)};
}

template <class Answer>
auto carrying() {
  return [](const Record& record) { return Answer{record}; };
}

Audit note(AuditEvent event, Generation generation, const Stored& before,
           std::optional<State> after) {
  Audit audit;
  audit.event = event;
  audit.generation = generation;
  if (before) audit.before = before->state;
  audit.after = after;
  return audit;
}

std::optional<Lease> lease_from(const Policies& policies, const Now& now) {
  if (!policies.lease) return std::nullopt;
  return Lease{now.boot + *policies.lease, now.boot_id};
}

bool lease_over(const Record& record, const Now& now) {
  return lease_left(record, now) == Duration::zero();
}

/// A lease end further ahead than the lease is long would be pushed on by every look: it is cut
/// once, in the record.
bool lease_too_far_ahead(const Record& record, const Now& now) {
  return record.lease && record.policies.lease && record.lease->boot == now.boot_id &&
         record.lease->end - now.boot > *record.policies.lease;
}

/// The record of this attempt; nothing if the key belongs to somebody else or to nobody.
template <class OwnerEvent>
const Record* owned(const Stored& record, const OwnerEvent& event, const Now& now) {
  if (!record || is_over(*record, now)) return nullptr;
  const bool same = record->generation == event.generation && record->owner == event.owner;
  return same ? &*record : nullptr;
}

Step lost(const Stored& record, const Now& now) {
  if (!record || is_over(*record, now)) return answer(decision::Lost{});
  return answer(decision::Lost{record, condition(*record, now)});
}

Step changed(const Stored& record) { return answer(decision::Changed{record}); }

Record made_uncertain(Record record, UncertainCause cause,
                      const std::optional<StoredResult>& seen) {
  record.state = State::uncertain;
  record.cause = cause;
  if (seen) record.result = seen;
  return record;
}

Record made_final(Record record, State state, std::optional<StoredResult> result, SettledBy by,
                  const Now& now) {
  record.state = state;
  record.cause = UncertainCause::none;
  record.settled_by = by;
  record.lease.reset();
  record.settled = now.wall;
  record.expires = now.wall + record.policies.retention;
  record.result = std::move(result);
  return record;
}

/// Processing again under the same generation, with a whole lease.
Record restarted(Record record, const Now& now) {
  record.state = State::processing;
  record.cause = UncertainCause::none;
  record.result.reset();
  record.lease = lease_from(record.policies, now);
  return record;
}

bool undone_by_its_owner(const Record& record) {
  return record.state == State::processing ||
         (record.state == State::uncertain && record.cause == UncertainCause::lease_end);
}

std::optional<Audit> note_revival(const Record& record) {
  if (record.state == State::processing) return std::nullopt;
  return note(AuditEvent::revived, record.generation, record, State::processing);
}

// --- claim

Step begin(const event::Claim& claim, const Now& now) {
  Record record;
  record.state = State::processing;
  record.fingerprint = claim.fingerprint;
  record.generation = claim.generation;
  record.owner = claim.owner;
  record.operation_id = claim.operation_id;
  record.attempts = 1;
  record.policies = claim.policies;
  record.lease = lease_from(claim.policies, now);
  record.created = now.wall;
  record.claimed = now.wall;
  return put(std::move(record), carrying<decision::Execute>());
}

Step repeat_claim(const Record& record, const Now& now) {
  const auto execute = [](const Record& r) { return decision::Execute{r, r.attempts > 1, true}; };
  return put(restarted(record, now), execute, note_revival(record));
}

Step take_over(const Record& before, const event::Claim& claim, const Now& now) {
  Record record = restarted(before, now);
  record.generation = claim.generation;
  record.owner = claim.owner;
  record.attempts = before.attempts + 1;
  record.claimed = now.wall;
  return put(
      std::move(record),
      [](const Record& r) {
        return decision::Execute{r, true, false};
      },
      note(AuditEvent::taken_over, claim.generation, before, State::processing));
}

Step end_lease(const Record& record) {
  const auto entered = [](const Record& r) { return decision::Uncertain{r, true}; };
  return put(made_uncertain(record, UncertainCause::lease_end, std::nullopt), entered,
             note(AuditEvent::became_uncertain, record.generation, record, State::uncertain));
}

Step in_progress(Record record, const Now& now) {
  const bool cut = lease_too_far_ahead(record, now);
  const auto in_progress = [&](const Record& r) {
    const Duration age = std::max(Duration::zero(), now.wall - r.claimed);
    return decision::InProgress{r, lease_left(r, now), age};
  };
  if (!cut) return answer(in_progress(record));
  record.lease = lease_from(record.policies, now);
  return put(std::move(record), in_progress);
}

Step claim_processing(const Record& record, const event::Claim& claim, const Now& now) {
  if (!lease_over(record, now)) return in_progress(record, now);
  const bool takeover = record.policies.on_lease_expiry == OnLeaseExpiry::takeover &&
                        claim.policies.on_lease_expiry == OnLeaseExpiry::takeover;
  return takeover ? take_over(record, claim, now) : end_lease(record);
}

Step on(const Stored& record, const event::Claim& claim, const Now& now) {
  const Condition seen = condition(record, now);
  if (seen == Condition::absent) return begin(claim, now);
  if (record->fingerprint.profile != claim.fingerprint.profile)
    return answer(decision::OtherProfile{record->fingerprint.profile});
  if (record->fingerprint.digest != claim.fingerprint.digest)
    return answer(decision::Mismatch{*record});
  if (seen == Condition::completed || seen == Condition::failed)
    return answer(decision::Replay{*record});
  if (seen == Condition::tombstone) return answer(decision::Gone{*record});
  if (record->owner == claim.owner && undone_by_its_owner(*record))
    return repeat_claim(*record, now);
  if (seen == Condition::uncertain) return answer(decision::Uncertain{*record});
  return claim_processing(*record, claim, now);
}

// --- the owner

Step on(const Stored& record, const event::Renew& renew, const Now& now) {
  const Record* mine = owned(record, renew, now);
  if (!mine || !undone_by_its_owner(*mine)) return lost(record, now);
  return put(restarted(*mine, now), carrying<decision::Ok>(), note_revival(*mine));
}

/// Once a record was taken over, a status other than 2xx or 303 proves nothing about the attempts
/// before, unless the upstream said what it means.
bool proves_nothing(const Record& record, const event::Settle& settle) {
  const int status = settle.result.status;
  const bool success = (status >= 200 && status < 300) || status == 303;
  return record.attempts > 1 && !settle.declared && !success;
}

/// Whether a result that cannot be published speaks against what stands under the key now.
bool contradicts(const Record* standing, const event::Settle& late) {
  const bool effect = late.outcome == event::Final::completed;
  // No record, or one of a later life of the key: somebody held that there was no effect, or that
  // it was over and done with.
  if (!standing) return effect;
  const bool earlier_life = standing->generation != late.generation && standing->attempts == 1;
  if (earlier_life || standing->state == State::freed) return effect;
  if (standing->state == State::processing || standing->state == State::uncertain) return false;
  if ((standing->state == State::completed) != effect) return true;
  return standing->result && standing->result->resource_id && late.result.resource_id &&
         standing->result->resource_id != late.result.resource_id;
}

Step too_late(const Stored& record, const event::Settle& settle, const Now& now) {
  const Record* standing = record && !is_over(*record, now) ? &*record : nullptr;
  Step step = lost(record, now);
  step.audit = note(AuditEvent::late_result, settle.generation, standing ? record : std::nullopt,
                    standing ? std::optional(standing->state) : std::nullopt);
  step.audit->late_outcome = settle.outcome;
  step.audit->late_result = settle.result;
  step.audit->contradicts = contradicts(standing, settle);
  std::get<decision::Lost>(step.decision).contradicts = step.audit->contradicts;
  return step;
}

/// Uncertain because what the owner says of its own attempt is no answer for those before it.
Step after_takeover(const Record& record, const std::optional<StoredResult>& seen) {
  if (record.state == State::uncertain) {
    if (!seen || record.result) return answer(decision::BecameUncertain{record});
    return put(made_uncertain(record, record.cause, seen), carrying<decision::BecameUncertain>());
  }
  return put(made_uncertain(record, UncertainCause::after_takeover, seen),
             carrying<decision::BecameUncertain>(),
             note(AuditEvent::became_uncertain, record.generation, record, State::uncertain));
}

Step settle_now(const Record& record, const event::Settle& settle, const Now& now) {
  const State state = settle.outcome == event::Final::completed ? State::completed : State::failed;
  std::optional<Audit> audit;
  if (record.state != State::processing) {
    audit = note(AuditEvent::late_completion, record.generation, record, state);
    audit->contradicts = record.state == State::freed && state == State::completed;
  }
  return put(made_final(record, state, settle.result, SettledBy::owner, now),
             carrying<decision::Ok>(), std::move(audit));
}

Step on(const Stored& record, const event::Settle& settle, const Now& now) {
  const Record* mine = owned(record, settle, now);
  if (!mine) return too_late(record, settle, now);
  switch (mine->state) {
    case State::completed:
    case State::failed:
      return mine->settled_by == SettledBy::owner ? answer(decision::Ok{*mine})
                                                  : too_late(record, settle, now);
    case State::freed:
      return proves_nothing(*mine, settle) ? too_late(record, settle, now)
                                           : settle_now(*mine, settle, now);
    case State::processing:
    case State::uncertain:
      break;
  }
  return proves_nothing(*mine, settle) ? after_takeover(*mine, settle.result)
                                       : settle_now(*mine, settle, now);
}

bool is_open(const Record& record) {
  return record.state == State::processing || record.state == State::uncertain;
}

Step on(const Stored& record, const event::Release& release, const Now& now) {
  const Record* mine = owned(record, release, now);
  if (!mine || !is_open(*mine)) return lost(record, now);
  if (mine->attempts > 1) return after_takeover(*mine, std::nullopt);
  std::optional<Audit> audit;
  if (mine->state == State::uncertain)
    audit = note(AuditEvent::late_release, mine->generation, record, std::nullopt);
  return {Change::erase, std::nullopt, decision::Ok{}, std::move(audit)};
}

Step on(const Stored& record, const event::MarkUncertain& mark, const Now& now) {
  const Record* mine = owned(record, mark, now);
  if (!mine || !is_open(*mine)) return lost(record, now);
  if (mine->state == State::uncertain && mine->cause != UncertainCause::lease_end)
    return answer(decision::Ok{*mine});
  std::optional<Audit> audit;
  if (mine->state == State::processing)
    audit = note(AuditEvent::became_uncertain, mine->generation, record, State::uncertain);
  return put(made_uncertain(*mine, mark.cause, mark.seen), carrying<decision::Ok>(),
             std::move(audit));
}

Step on(const Stored& record, const event::Abandon& abandon, const Now& now) {
  const Record* mine = owned(record, abandon, now);
  if (!mine || !is_open(*mine)) return lost(record, now);
  if (mine->state == State::uncertain) return answer(decision::Ok{*mine});
  if (mine->policies.on_lease_expiry == OnLeaseExpiry::takeover && mine->lease &&
      mine->policies.lease) {
    Record ended = *mine;
    ended.lease = Lease{now.boot, now.boot_id};
    return put(std::move(ended), carrying<decision::Ok>());
  }
  return put(made_uncertain(*mine, UncertainCause::owner_stopped, std::nullopt),
             carrying<decision::Ok>(),
             note(AuditEvent::became_uncertain, mine->generation, record, State::uncertain));
}

// --- any process, operators, reconcilers

Step on(const Stored& record, const event::Overdue&, const Now& now) {
  if (!record || record->state != State::processing) return answer(decision::Unchanged{});
  if (lease_too_far_ahead(*record, now)) {
    Record cut = *record;
    cut.lease = lease_from(cut.policies, now);
    return put(std::move(cut), [](const Record&) { return decision::Unchanged{}; });
  }
  if (!lease_over(*record, now) || record->policies.on_lease_expiry != OnLeaseExpiry::uncertain)
    return answer(decision::Unchanged{});
  Step step = end_lease(*record);
  step.decision = decision::BecameUncertain{*step.record};
  return step;
}

Step on(const Stored& record, const event::Doubt& doubt, const Now&) {
  if (!record || record->generation != doubt.generation || record->state != State::processing ||
      record->lease)
    return changed(record);
  return put(made_uncertain(*record, UncertainCause::operator_doubt, std::nullopt),
             carrying<decision::Ok>(),
             note(AuditEvent::doubted, record->generation, record, State::uncertain));
}

Step on(const Stored& record, const event::Resolve& resolve, const Now& now) {
  const bool open = record && (record->state == State::uncertain ||
                               (record->state == State::processing && resolve.force));
  if (!open || record->generation != resolve.generation) return changed(record);
  State state = State::freed;
  if (resolve.to == event::Resolution::completed) state = State::completed;
  if (resolve.to == event::Resolution::failed) state = State::failed;
  const bool keep_result = state != State::freed;
  return put(
      made_final(*record, state, keep_result ? resolve.result : std::nullopt, resolve.by, now),
      carrying<decision::Ok>(), note(AuditEvent::resolved, record->generation, record, state));
}

Step on(const Stored& record, const event::Forget& forget, const Now&) {
  if (!record || record->generation != forget.generation || is_open(*record))
    return changed(record);
  return {Change::erase, std::nullopt, decision::Ok{},
          note(AuditEvent::forgotten, record->generation, record, std::nullopt)};
}

Step on(const Stored& record, const event::Sweep&, const Now& now) {
  if (!record) return answer(decision::Unchanged{});
  if (is_over(*record, now)) return {Change::erase, std::nullopt, decision::Ok{}, {}};
  if (condition(record, now) != Condition::tombstone || !record->result)
    return answer(decision::Unchanged{});
  Record stripped = *record;
  stripped.result.reset();
  return put(std::move(stripped), carrying<decision::Ok>());
}

}  // namespace

Step decide(const std::optional<Record>& record, const Event& event, const Now& now) {
  return std::visit([&](const auto& e) { return on(record, e, now); }, event);
}

}  // namespace einmal
