#include "einmal/store/check_request.hpp"

#include <algorithm>

#include "einmal/core/check_limits.hpp"

namespace einmal {

namespace {

Result<void> check_actor(const Actor& actor, bool required) {
  if (required && actor.who.empty())
    return failure(ErrorCode::invalid, "actor: say who acts; it goes to the audit");
  if (actor.who.size() > max_actor_bytes)
    return failure(ErrorCode::invalid, "actor: at most 256 bytes");
  if (actor.evidence.size() > max_evidence_bytes)
    return failure(ErrorCode::invalid, "evidence: at most 4096 bytes");
  return {};
}

Result<void> check_profile(const request::Transition& transition) {
  if (!transition.profile) return {};
  const auto* claim = std::get_if<event::Claim>(&transition.event);
  if (!claim || claim->fingerprint.profile != transition.profile->id)
    return failure(ErrorCode::invalid, "profile: not the one the claim's fingerprint names");
  if (transition.profile->definition.size() > max_profile_bytes)
    return failure(ErrorCode::invalid, "profile: its definition has more than 64 KiB");
  return {};
}

bool is_an_operators(const Event& event) {
  return std::holds_alternative<event::Doubt>(event) ||
         std::holds_alternative<event::Resolve>(event) ||
         std::holds_alternative<event::Forget>(event);
}

Result<void> check(const request::Transition& transition) {
  if (auto limits = check_limits(transition.event); !limits) return limits;
  if (auto profile = check_profile(transition); !profile) return profile;
  return check_actor(transition.actor, is_an_operators(transition.event));
}
Result<void> check(const request::AdvanceGenerations& advance) {
  return check_actor(advance.actor, true);
}
Result<void> check(const request::AcceptTime& accept) { return check_actor(accept.actor, true); }
template <class Other>
Result<void> check(const Other&) {
  return {};
}

}  // namespace

Result<void> check_request(const Request& request) {
  return std::visit([](const auto& r) { return check(r); }, request);
}

std::size_t bounded(std::size_t limit) { return std::clamp<std::size_t>(limit, 1, max_batch); }

}  // namespace einmal
