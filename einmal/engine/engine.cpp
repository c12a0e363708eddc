#include "einmal/engine/engine.hpp"

#include <utility>

#include "einmal/engine/beginning.hpp"
#include "einmal/engine/desk.hpp"
#include "einmal/engine/ownership.hpp"
#include "einmal/engine/reconciliation.hpp"
#include "einmal/engine/upkeep.hpp"

namespace einmal {

using detail::Beginning;
using detail::Desk;
using detail::Ownership;

Engine::Engine(Store& store, Scheduler& scheduler, const Clock& clock, Random& random,
               Observer& observer, EngineLimits limits)
    : desk_(std::make_unique<Desk>(store, scheduler, clock, random, observer, limits)),
      upkeep_(std::make_unique<detail::Upkeep>(*desk_)),
      reconciliation_(std::make_unique<detail::Reconciliation>(*desk_)) {}

Engine::~Engine() = default;

Engine::Ticket Engine::begin(BeginRequest request, std::function<void(Begun)> done) {
  auto* beginning = new Beginning(*desk_, std::move(request), std::move(done));
  const Ticket ticket = beginning->ticket();
  beginning->start();
  return ticket;
}

bool Engine::is_waiting(Ticket ticket) const {
  const Beginning* beginning = desk_->tickets.find(ticket);
  return beginning != nullptr && beginning->is_waiting();
}

void Engine::drop(Ticket ticket) {
  if (Beginning* beginning = desk_->tickets.find(ticket)) beginning->drop();
}

void Engine::check_quota(const Scope& scope,
                         std::function<void(std::optional<begun::OverQuota>)> done) {
  if (desk_->quotas.within(scope)) {
    desk_->scheduler.post([done = std::move(done)] { done(std::nullopt); });
  } else {
    desk_->quotas.ask(scope, std::move(done));
  }
}

void Engine::ask(Request request, std::function<void(Result<Answer>)> done) {
  detail::SmallCall::send(desk_->mailbox, StoreCall::read, std::move(request), std::move(done));
}

EngineLoad Engine::load() const {
  EngineLoad load = desk_->load;
  load.waiters = desk_->watches.waiters();
  return load;
}

void Engine::start_sweeping(Duration interval) { upkeep_->start_sweeping(interval); }
void Engine::start_measuring(Duration interval) { upkeep_->start_measuring(interval); }

void Engine::start_reconciling(Reconciler& reconciler, std::string name_space, Duration interval) {
  reconciliation_->start(reconciler, std::move(name_space), interval);
}

void Engine::drain(std::function<void()> idle) {
  desk_->draining = true;
  desk_->on_idle = std::move(idle);
  upkeep_->stop();
  reconciliation_->stop();
  desk_->watches.dismiss();
  desk_->something_ended();
}

void Engine::stop(std::function<void()> done) {
  desk_->draining = true;
  desk_->stopping = true;
  upkeep_->stop();
  reconciliation_->stop();
  desk_->watches.dismiss();
  desk_->on_stopped = std::move(done);
  desk_->stop_deadline.set(desk_->now() + desk_->limits.store_deadline);
  // What ends during the walk takes itself out of the list and may take others with it, so each
  // step starts from what is left.
  detail::List<Beginning, Beginning> begun;
  begun.splice(desk_->beginnings);
  while (Beginning* beginning = begun.front()) {
    desk_->beginnings.push_back(*beginning);
    beginning->stop();
  }
  detail::List<Ownership, Ownership> owned;
  owned.splice(desk_->ownerships);
  while (Ownership* ownership = owned.front()) {
    desk_->ownerships.push_back(*ownership);
    ownership->stop();
  }
  desk_->something_ended();
}

namespace {

bool given_from_outside(const Record& record) {
  return record.settled_by == SettledBy::operator_ || record.settled_by == SettledBy::reconciler;
}

}  // namespace

Begun as_duplicate(const finished::Lost& lost, const Record& own) {
  const Record& record = *lost.record;
  const begun::InProgress come_again{record.operation_id, std::chrono::seconds(1)};
  // Digests of two profiles do not compare; the next request is compared under the record's own.
  if (record.fingerprint.profile != own.fingerprint.profile) return come_again;
  if (record.fingerprint.digest != own.fingerprint.digest)
    return begun::Mismatch{record.operation_id};
  switch (lost.condition) {
    case Condition::completed:
    case Condition::failed:
      return begun::Replay{lost.record, given_from_outside(record)};
    case Condition::tombstone:
      return begun::Gone{lost.record};
    case Condition::uncertain:
      return begun::Uncertain{lost.record};
    case Condition::processing:
    case Condition::absent:
      break;
  }
  return come_again;
}

}  // namespace einmal
