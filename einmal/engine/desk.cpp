#include "einmal/engine/desk.hpp"

#include <cstring>
#include <utility>

#include "einmal/engine/beginning.hpp"
#include "einmal/engine/ownership.hpp"

namespace einmal::detail {

namespace {

constexpr std::size_t most_profiles = 256;

std::uint32_t slot_of(Engine::Ticket ticket) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(ticket));
}
std::uint32_t serial_of(Engine::Ticket ticket) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(ticket) >> 32);
}

}  // namespace

Engine::Ticket Tickets::issue(Beginning& beginning) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  slots_[index].beginning = &beginning;
  return static_cast<Engine::Ticket>(std::uint64_t{slots_[index].serial} << 32 | index);
}

Beginning* Tickets::find(Engine::Ticket ticket) const {
  const std::uint32_t index = slot_of(ticket);
  if (index >= slots_.size() || slots_[index].serial != serial_of(ticket)) return nullptr;
  return slots_[index].beginning;
}

void Tickets::retire(Engine::Ticket ticket) {
  if (!find(ticket)) return;
  Slot& slot = slots_[slot_of(ticket)];
  slot.beginning = nullptr;
  if (++slot.serial == 0) slot.serial = 1;
  free_.push_back(slot_of(ticket));
}

std::size_t Profiles::DigestHash::operator()(const Digest& digest) const noexcept {
  std::size_t sum = 0;
  std::memcpy(&sum, digest.data(), sizeof sum);
  return sum;
}

std::shared_ptr<const Profile> Profiles::find(const Digest& id) const {
  const auto at = known_.find(id);
  return at == known_.end() ? nullptr : at->second;
}

void Profiles::keep(std::shared_ptr<const Profile> profile) {
  if (known_.size() >= most_profiles) known_.clear();
  const Digest id = profile->id;
  known_.insert_or_assign(id, std::move(profile));
}

Desk::Desk(Store& store_, Scheduler& scheduler_, const Clock& clock_, Random& random_,
           Observer& observer_, EngineLimits limits_)
    : store(store_),
      scheduler(scheduler_),
      clock(clock_),
      random(random_),
      observer(observer_),
      limits(limits_),
      mailbox(std::make_shared<Mailbox>(store, scheduler, clock, observer)),
      timers(scheduler, clock),
      watches(store, mailbox, timers, random, observer, limits),
      quotas(mailbox, timers, random, limits),
      stop_deadline(timers, [this] {
        if (const auto done = std::exchange(on_stopped, nullptr)) scheduler.post(done);
      }) {
  mailbox->on_ring([this] { watches.look_again(); });
  store.on_foreign_change([box = mailbox] { box->ring(); });
}

/// Everything is unlinked before the mailbox closes: what is still at the store after that deletes
/// itself on the store's thread and must not find this.
Desk::~Desk() {
  store.on_foreign_change({});
  std::vector<std::unique_ptr<Call>> ours;
  while (Beginning* beginning = beginnings.front()) {
    beginning->detach();
    if (!beginning->at_store()) ours.emplace_back(beginning);
  }
  while (Ownership* ownership = ownerships.front()) {
    ownership->detach();
    if (!ownership->at_store()) ours.emplace_back(ownership);
  }
  ours.clear();
  watches.clear();
  quotas.clear();
  mailbox->close();
}

bool Desk::room_in_background() {
  if (load.background < limits.background_writes) return true;
  observer.alarm(Alarm::background_full,
                 "too many writes wait for the store; one was given up, its record is left to the "
                 "end of its lease");
  return false;
}

void Desk::something_ended() {
  if (!idle()) return;
  if (on_idle) scheduler.post(std::exchange(on_idle, nullptr));
  if (on_stopped) {
    stop_deadline.cancel();
    scheduler.post(std::exchange(on_stopped, nullptr));
  }
}

}  // namespace einmal::detail
