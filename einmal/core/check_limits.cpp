#include "einmal/core/check_limits.hpp"

#include <string>

namespace einmal {

namespace {

tl::unexpected<Error> invalid(std::string what) {
  return failure(ErrorCode::invalid, std::move(what));
}

Result<void> check_owner(Generation generation, const OwnerToken& owner) {
  if (number(generation) == 0) return invalid("event: the generation must be at least 1");
  if (owner.is_nil()) return invalid("event: the owner token was not drawn");
  return {};
}

Result<void> check_generation(Generation generation) {
  if (number(generation) == 0) return invalid("event: the generation must be at least 1");
  return {};
}

Result<void> check(const event::Claim& claim) {
  if (claim.owner.is_nil()) return invalid("claim: the owner token was not drawn");
  if (claim.operation_id.is_nil()) return invalid("claim: the operation id was not drawn");
  return check_limits(claim.policies);
}
Result<void> check(const event::Renew& renew) { return check_owner(renew.generation, renew.owner); }
Result<void> check(const event::Settle& settle) {
  if (auto result = check_limits(settle.result); !result) return result;
  return check_owner(settle.generation, settle.owner);
}
Result<void> check(const event::Release& release) {
  return check_owner(release.generation, release.owner);
}
Result<void> check(const event::MarkUncertain& mark) {
  // Silence is established by the store alone: an owner that speaks is not silent.
  if (mark.cause != UncertainCause::outcome_unknown && mark.cause != UncertainCause::owner_stopped)
    return invalid("mark uncertain: the cause must be outcome_unknown or owner_stopped");
  if (mark.seen) {
    if (auto result = check_limits(*mark.seen); !result) return result;
  }
  return check_owner(mark.generation, mark.owner);
}
Result<void> check(const event::Abandon& abandon) {
  return check_owner(abandon.generation, abandon.owner);
}
Result<void> check(const event::Overdue&) { return {}; }
Result<void> check(const event::Doubt& doubt) { return check_generation(doubt.generation); }
Result<void> check(const event::Resolve& resolve) {
  if (resolve.by != SettledBy::operator_ && resolve.by != SettledBy::reconciler)
    return invalid("resolve: only an operator or a reconciler resolves");
  if (resolve.to != event::Resolution::freed && !resolve.result)
    return invalid("resolve: completed and failed need a result (a status at least)");
  if (resolve.result) {
    if (auto result = check_limits(*resolve.result); !result) return result;
  }
  return check_generation(resolve.generation);
}
Result<void> check(const event::Forget& forget) { return check_generation(forget.generation); }
Result<void> check(const event::Sweep&) { return {}; }

}  // namespace

Result<void> check_limits(const StoredResult& result) {
  if (result.status < min_status || result.status > max_status)
    return invalid("result: the status must be within 100..999");
  if (result.headers.size() > max_stored_header_bytes)
    return invalid("result: the stored header lines must be at most 64 KiB");
  if (result.body.size() > max_stored_body_bytes)
    return invalid("result: the stored body must be at most 64 MiB");
  if (result.body_kept != BodyKept::kept && !result.body.empty())
    return invalid("result: a body that is not kept must be empty");
  if (result.resource_id && result.resource_id->size() > max_resource_id_bytes)
    return invalid("result: the resource id must have at most 1024 bytes");
  return {};
}

Result<void> check_limits(const Policies& policies) {
  if (policies.lease && (*policies.lease < min_lease || *policies.lease > max_lease))
    return invalid("policies: the lease must be within 10ms..24h");
  if (policies.retention < min_retention || policies.retention > max_retention)
    return invalid("policies: the retention must be within 1ms..3653d");
  const bool tombstone_used = policies.after_expiry == AfterExpiry::refuse;
  if (tombstone_used && (policies.tombstone < min_tombstone || policies.tombstone > max_tombstone))
    return invalid("policies: the tombstone must be within 1ms..3653d");
  return {};
}

Result<void> check_limits(const Event& event) {
  return std::visit([](const auto& e) { return check(e); }, event);
}

}  // namespace einmal
