#include "einmal/store/check_request.hpp"

#include <algorithm>

#include "einmal/core/check_limits.hpp"
#include "einmal/core/limits.hpp"

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

Result<void> check_name(const std::string& name, const char* what) {
  if (!name.empty() && name.size() <= max_workflow_name_bytes) return {};
  return failure(ErrorCode::invalid, std::string("workflow: its ") + what + " has 1 to 255 bytes");
}
Result<void> check_input(const Bytes& input) {
  if (input.size() <= max_workflow_input_bytes) return {};
  return failure(ErrorCode::invalid, "workflow: its input has more than 1 MiB");
}
Result<void> check_delay(Duration delay, Duration least) {
  if (delay >= least && delay <= max_workflow_delay) return {};
  return failure(ErrorCode::invalid, "workflow: a lease or delay is negative, zero or too long");
}
Result<void> check_append(const Bytes& append) {
  if (append.size() <= max_workflow_journal_bytes) return {};
  return failure(ErrorCode::invalid, "workflow: its journal would have more than 16 MiB");
}

Result<void> check(const request::StartWorkflow& start) {
  if (start.claim.policies.lease)
    return failure(ErrorCode::invalid, "workflow: the claim of a workflow has no lease");
  if (auto limits = check_limits(Event(start.claim)); !limits) return limits;
  const request::Transition claim{start.scope, start.claim, start.profile, {}};
  if (auto profile = check_profile(claim); !profile) return profile;
  if (auto name = check_name(start.definition, "definition"); !name) return name;
  return check_input(start.input);
}
Result<void> check(const request::PickWorkflows& pick) {
  for (const std::string& definition : pick.definitions) {
    if (auto name = check_name(definition, "definition"); !name) return name;
  }
  return check_delay(pick.lease, Duration(1));
}
Result<void> check(const request::AdvanceWorkflow& advance) {
  if (advance.staged.size() > max_staged_at_once)
    return failure(ErrorCode::invalid, "workflow: more than 100 staged in one step");
  for (const request::StagedWorkflow& staged : advance.staged) {
    if (auto name = check_name(staged.definition, "definition"); !name) return name;
    if (auto name = check_name(staged.name, "staged name"); !name) return name;
    if (auto input = check_input(staged.input); !input) return input;
  }
  if (auto append = check_append(advance.append); !append) return append;
  if (const auto* hold = std::get_if<request::HoldWorkflow>(&advance.next))
    return check_delay(hold->lease, Duration(1));
  if (const auto* delay = std::get_if<request::DelayWorkflow>(&advance.next))
    return check_delay(delay->delay, Duration(0));
  if (const auto* finish = std::get_if<request::FinishWorkflow>(&advance.next))
    return check_limits(finish->result);
  return {};
}
Result<void> check(const request::ResumeWorkflow& resume) { return check_append(resume.append); }

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
