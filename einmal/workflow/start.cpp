#include "einmal/workflow/start.hpp"

#include <algorithm>
#include <thread>

namespace einmal::workflow {

namespace {

constexpr int starts_in_doubt = 3;
constexpr Duration longest_poll = std::chrono::milliseconds(250);

struct AsStarted {
  Result<Started> operator()(const decision::Execute& d) const {
    return Started(started::Accepted{d.record.operation_id, true});
  }
  Result<Started> operator()(const decision::InProgress& d) const {
    return Started(started::Accepted{d.record.operation_id, false});
  }
  Result<Started> operator()(decision::Replay& d) const {
    return Started(started::Replay{std::move(d.record)});
  }
  Result<Started> operator()(const decision::Mismatch&) const {
    return Started(started::Mismatch{});
  }
  Result<Started> operator()(const decision::OtherProfile& d) const {
    return Started(started::OtherProfile{d.profile});
  }
  Result<Started> operator()(decision::Uncertain& d) const {
    return Started(started::Uncertain{std::move(d.record)});
  }
  Result<Started> operator()(const decision::Gone&) const { return Started(started::Gone{}); }
  template <class Other>
  Result<Started> operator()(const Other&) const {
    return failure(ErrorCode::internal, "workflow: a claim was answered as another event");
  }
};

}  // namespace

Result<Started> start(Store& store, Random& random, const StartRequest& request) {
  if (!store.capabilities().workflows)
    return failure(ErrorCode::unsupported,
                   "workflow: store " + store.capabilities().name + " keeps no workflows");
  request::StartWorkflow command{
      request.scope, {}, request.profile, request.definition, request.input};
  command.claim.fingerprint = request.fingerprint;
  command.claim.policies = request.policies;
  command.claim.policies.lease.reset();
  command.claim.owner = OwnerToken::draw(random);
  command.claim.operation_id = OperationId::draw(random);
  for (int attempt = 1;; ++attempt) {
    auto answered = ask(store, command);  // the same owner: what was done is not done again
    if (answered) return std::visit(AsStarted{}, std::get<Decision>(*answered));
    if (answered.error().code != ErrorCode::in_doubt || attempt == starts_in_doubt)
      return pass_on(answered);
  }
}

Result<std::optional<Record>> wait_for_end(Store& store, const Clock& clock, const OperationId& id,
                                           Duration wait) {
  const BootTime end = clock.boot_now() + wait;
  for (Duration pause = std::chrono::milliseconds(5);; pause = std::min(2 * pause, longest_poll)) {
    auto answered = ask(store, request::ReadOperation{id});
    if (!answered) return pass_on(answered);
    auto& found = std::get<answer::Found>(*answered).record;
    const bool open = found && found->condition == Condition::processing;
    if (!open) return found ? std::optional(std::move(found->record)) : std::optional<Record>();
    const Duration left = end - clock.boot_now();
    if (left <= Duration::zero()) return std::optional<Record>();
    std::this_thread::sleep_for(std::min(pause, left));
  }
}

}  // namespace einmal::workflow
