#include "store_link.hpp"

#include <algorithm>
#include <utility>

namespace einmal::simulation {

using namespace std::chrono_literals;

struct StoreLink::Call {
  Call(Command& c, Request r) : command(&c), request(std::move(r)) {}

  Command* command;  ///< Null: nobody waits for the answer any more.
  Request request;
  bool refused = false;   ///< Never gets there.
  bool lost = false;      ///< Gets there or not, and the answer is lost: in doubt.
  bool vanished = false;  ///< Does not get there, and nobody knows.
  Duration back{};
  Result<Answer> answer = failure(ErrorCode::unavailable, "the store is away");
};

StoreLink::StoreLink(World& world, Timeline::Process process, std::uint64_t life)
    : world_(world), process_(process), chance_(stream(world.plan.seed, 's', process, life)) {
  capabilities_.name = "simulated";
}

StoreLink::~StoreLink() { process_died(); }

namespace {

const event::Claim* claim_in(const Request& request) {
  const auto* transition = std::get_if<request::Transition>(&request);
  return transition ? std::get_if<event::Claim>(&transition->event) : nullptr;
}

}  // namespace

void StoreLink::submit(Command& command) {
  const event::Claim* claim = claim_in(command.request());
  if (request_ && claim) world_.auditor.claims_as(*request_, token_of(claim->owner));
  auto call = std::make_shared<Call>(command, command.request());
  Duration there = 50us + Duration(chance_.below(400));
  call->back = 50us + Duration(chance_.below(400));
  const std::uint64_t dice = chance_.below(1000);
  if (world_.store_refuses() || dice < 3) call->refused = true;
  if (world_.store_in_doubt() ? dice < 600 : dice >= 990) {
    call->lost = true;
    call->vanished = chance_.below(2) == 0;
  }
  if (world_.store_stalls() || (dice >= 10 && dice < 20)) {
    there += Duration(chance_.below(4'000'000));
    call->back += Duration(chance_.below(4'000'000));
  }
  if (claim) {
    const Duration stranded = world_.take_stranding(process_);
    call->lost = call->lost || stranded > Duration::zero();
    call->back += stranded;
  }
  calls_.push_back(call);
  const Timeline::Process where = world_.plan.store_in_process ? process_ : 0;
  world_.timeline.after(where, there, [this, call] { apply(call); });
}

void StoreLink::apply(const std::shared_ptr<Call>& call) {
  if (!call->command && world_.plan.store_in_process) return;
  if (call->refused) {
    call->answer = failure(ErrorCode::unavailable, "the store is away");
  } else {
    if (!call->vanished) call->answer = world_.store.run(call->request);
    if (call->lost) call->answer = failure(ErrorCode::in_doubt, "the answer was lost");
  }
  if (!call->command) return;
  world_.timeline.after(process_, call->back, [this, call] { deliver(call); });
}

void StoreLink::deliver(const std::shared_ptr<Call>& call) {
  calls_.remove(call);
  if (const auto* decision = call->answer ? std::get_if<Decision>(&*call->answer) : nullptr) {
    const auto* waits = std::get_if<decision::InProgress>(decision);
    if (waits) world_.auditor.heard_in_progress(token_of(claim_in(call->request)->owner));
  }
  std::exchange(call->command, nullptr)->completed(std::move(call->answer));
}

void StoreLink::process_died() {
  for (const std::shared_ptr<Call>& call : std::exchange(calls_, {})) {
    // What a server has not seen yet may still reach it, or not.
    if (chance_.below(2) == 0) call->refused = true;
    std::exchange(call->command, nullptr)
        ->completed(failure(ErrorCode::unavailable, "the process is gone"));
  }
}

}  // namespace einmal::simulation
