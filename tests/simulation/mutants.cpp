#include <utility>

#include "history.hpp"

/// Broken rules, each made from the right one by changing what it sees or what it says.
namespace einmal::simulation {

namespace {

using Stored = std::optional<Record>;

/// The event as if its sender owned the record.
template <class OwnerEvent>
Step without_fence(const Stored& record, const Event& event, const Now& now) {
  const auto* of_owner = std::get_if<OwnerEvent>(&event);
  if (!of_owner || !record) return decide(record, event, now);
  OwnerEvent forged = *of_owner;
  forged.generation = record->generation;
  forged.owner = record->owner;
  return decide(record, forged, now);
}

/// A claim that finds nothing where a record of `state` is older than its retention.
Step open_record_expires(State state, const Stored& record, const Event& event, const Now& now) {
  const bool expired = record && record->state == state && std::get_if<event::Claim>(&event) &&
                       now.wall >= record->claimed + record->policies.retention;
  return decide(expired ? std::nullopt : record, event, now);
}
Step processing_expires(const Stored& record, const Event& event, const Now& now) {
  return open_record_expires(State::processing, record, event, now);
}
Step uncertain_expires(const Stored& record, const Event& event, const Now& now) {
  return open_record_expires(State::uncertain, record, event, now);
}

/// Decides a claim as if the record had promised otherwise; what it keeps is unchanged.
Step claim_under(const Policies& pretended, const Record& record, const Event& event,
                 const Now& now) {
  Record believed = record;
  believed.policies = pretended;
  Step step = decide(believed, event, now);
  const bool same = step.record && step.record->operation_id == record.operation_id;
  if (same) step.record->policies = record.policies;
  if (auto* execute = std::get_if<decision::Execute>(&step.decision); execute && same)
    execute->record = *step.record;
  return step;
}

Step fingerprint_ignored(const Stored& record, const Event& event, const Now& now) {
  const auto* claim = std::get_if<event::Claim>(&event);
  if (!claim || !record) return decide(record, event, now);
  event::Claim blind = *claim;
  blind.fingerprint = record->fingerprint;
  return decide(record, blind, now);
}

Step takeover_without_opt_in(const Stored& record, const Event& event, const Now& now) {
  const auto* claim = std::get_if<event::Claim>(&event);
  if (!claim || !record) return decide(record, event, now);
  event::Claim bold = *claim;
  bold.policies.on_lease_expiry = OnLeaseExpiry::takeover;
  Policies willing = record->policies;
  willing.on_lease_expiry = OnLeaseExpiry::takeover;
  const bool takes_over = record->state == State::processing;
  return takes_over ? claim_under(willing, *record, bold, now) : decide(record, event, now);
}

Step release_after_takeover_frees(const Stored& record, const Event& event, const Now& now) {
  if (!std::get_if<event::Release>(&event) || !record) return decide(record, event, now);
  Record first = *record;
  first.attempts = 1;
  return decide(first, event, now);
}

Step any_status_settles_after_takeover(const Stored& record, const Event& event, const Now& now) {
  const auto* settle = std::get_if<event::Settle>(&event);
  if (!settle) return decide(record, event, now);
  event::Settle believed = *settle;
  believed.declared = true;
  return decide(record, believed, now);
}

Step generation_repeats(const Stored& record, const Event& event, const Now& now) {
  const auto* claim = std::get_if<event::Claim>(&event);
  if (!claim) return decide(record, event, now);
  event::Claim stale = *claim;
  stale.generation = record ? record->generation : Generation{1};
  return decide(record, stale, now);
}

Step retention_from_the_claim(const Stored& record, const Event& event, const Now& now) {
  Step step = decide(record, event, now);
  if (step.record && step.record->expires)
    step.record->expires = step.record->claimed + step.record->policies.retention;
  return step;
}

Step missing_lease_elapses(const Stored& record, const Event& event, const Now& now) {
  const bool missing = record && record->state == State::processing && !record->policies.lease;
  if (!missing || !std::get_if<event::Claim>(&event)) return decide(record, event, now);
  Record elapsed = *record;
  elapsed.lease = Lease{};
  Policies pretended = record->policies;
  pretended.lease = std::chrono::seconds(1);
  return claim_under(pretended, elapsed, event, now);
}

Step late_owner_overwrites_an_operator(const Stored& record, const Event& event, const Now& now) {
  const auto* settle = std::get_if<event::Settle>(&event);
  const bool resolved =
      record && record->settled_by != SettledBy::nobody && record->settled_by != SettledBy::owner;
  if (!settle || !resolved) return decide(record, event, now);
  Record open = *record;
  open.state = State::uncertain;
  return decide(open, event, now);
}

Step tombstone_is_claimed(const Stored& record, const Event& event, const Now& now) {
  if (!record || !std::get_if<event::Claim>(&event)) return decide(record, event, now);
  Policies weak = record->policies;
  weak.after_expiry = AfterExpiry::claim_anew;
  return claim_under(weak, *record, event, now);
}

Step resolve_without_looking(const Stored& record, const Event& event, const Now& now) {
  const auto* resolve = std::get_if<event::Resolve>(&event);
  if (!resolve || !record) return decide(record, event, now);
  event::Resolve blind = *resolve;
  blind.generation = record->generation;
  return decide(record, blind, now);
}

}  // namespace

std::vector<Mutant> all_mutants() {
  std::vector<Mutant> mutants;
  const auto rule = [&](std::string name, Decide decide, bool seen_from_outside = false) {
    Mutant mutant;
    mutant.name = std::move(name);
    mutant.decide = decide;
    mutant.seen_from_outside = seen_from_outside;
    mutants.push_back(std::move(mutant));
  };
  rule("NoFenceOnRenew", &without_fence<event::Renew>, true);
  rule("NoFenceOnComplete", &without_fence<event::Settle>, true);
  rule("NoFenceOnRelease", &without_fence<event::Release>);
  rule("NoFenceOnMarkUncertain", &without_fence<event::MarkUncertain>);
  rule("ProcessingExpires", &processing_expires, true);
  rule("UncertainExpires", &uncertain_expires, true);
  rule("FingerprintIgnored", &fingerprint_ignored, true);
  rule("TakeoverWithoutOptIn", &takeover_without_opt_in, true);
  rule("ReleaseAfterATakeoverFrees", &release_after_takeover_frees, true);
  rule("AnyStatusSettlesAfterATakeover", &any_status_settles_after_takeover);
  rule("GenerationRepeats", &generation_repeats, true);
  rule("RetentionFromTheClaim", &retention_from_the_claim, true);
  rule("MissingLeaseElapses", &missing_lease_elapses);
  rule("LateOwnerOverwritesAnOperator", &late_owner_overwrites_an_operator);
  rule("TombstoneIsClaimed", &tombstone_is_claimed, true);
  rule("ResolveWithoutLooking", &resolve_without_looking);
  const auto behaviour = [&](std::string name, bool Mutant::*broken) {
    Mutant mutant;
    mutant.name = std::move(name);
    mutant.*broken = true;
    mutant.seen_from_outside = true;
    mutants.push_back(std::move(mutant));
  };
  behaviour("WaiterClaims", &Mutant::waiter_claims);
  behaviour("AnswersBeforeItIsDurable", &Mutant::answers_before_durable);
  behaviour("SendsWithoutAskingForTheLease", &Mutant::sends_without_asking);
  behaviour("ReconcilerFreesBeforeItIsQuiet", &Mutant::frees_before_quiet);
  return mutants;
}

}  // namespace einmal::simulation
