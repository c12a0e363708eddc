#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "einmal/engine/engine.hpp"
#include "einmal/engine/linked_list.hpp"
#include "einmal/engine/mailbox.hpp"
#include "einmal/engine/quotas.hpp"
#include "einmal/engine/timer_queue.hpp"
#include "einmal/engine/watches.hpp"

namespace einmal::detail {

class Beginning;
class Ownership;

/// Names of begins that are not answered yet. A name is never used twice for different begins
/// (until 2^32 of them went through one slot), so it serves as a weak reference.
class Tickets {
 public:
  Engine::Ticket issue(Beginning& beginning);
  Beginning* find(Engine::Ticket ticket) const;
  void retire(Engine::Ticket ticket);

 private:
  struct Slot {
    Beginning* beginning = nullptr;
    std::uint32_t serial = 1;
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

/// Notices a store that handed out a lower generation than before: it has lost commits.
///
/// Generations of different keys may become visible out of order (PostgreSQL draws them from a
/// sequence inside transactions that commit in any order), so the highest one seen when an answer
/// *arrives* proves nothing. But whatever was seen before a claim was *sent* had been drawn before,
/// and the claim's own is drawn after; the counter only grows. Hence: the generation of a new claim
/// must exceed everything seen before that claim was first sent.
class GenerationGuard {
 public:
  void saw(Generation generation) {
    if (number(generation) > number(highest_)) highest_ = generation;
  }
  Generation highest() const { return highest_; }
  /// From now on no claim is made by this process.
  void trip() { tripped_ = true; }
  bool tripped() const { return tripped_; }

 private:
  Generation highest_{};
  bool tripped_ = false;
};

/// Profiles that the store named, kept so that it is asked once for each.
class Profiles {
 public:
  std::shared_ptr<const Profile> find(const Digest& id) const;
  void keep(std::shared_ptr<const Profile> profile);

 private:
  struct DigestHash {
    std::size_t operator()(const Digest& digest) const noexcept;
  };
  std::unordered_map<Digest, std::shared_ptr<const Profile>, DigestHash> known_;
};

/// What the parts of one engine share. It owns the begins and the executions that are open.
class Desk {
 public:
  Desk(Store& store_, Scheduler& scheduler_, const Clock& clock_, Random& random_,
       Observer& observer_, EngineLimits limits_);
  ~Desk();

  BootTime now() const { return clock.boot_now(); }
  /// Answers what waited for the drain or the stop, if its time has come.
  void something_ended();
  /// Whether there is room for one more background write; if not, an alarm says so.
  bool room_in_background();

  Store& store;
  Scheduler& scheduler;
  const Clock& clock;
  Random& random;
  Observer& observer;
  const EngineLimits limits;
  const std::shared_ptr<Mailbox> mailbox;
  TimerQueue timers;
  Watches watches;
  Quotas quotas;
  Tickets tickets;
  GenerationGuard generations;
  Profiles profiles;
  List<Beginning, Beginning> beginnings;
  List<Ownership, Ownership> ownerships;
  EngineLoad load;
  bool draining = false;
  bool stopping = false;
  std::function<void()> on_idle;
  std::function<void()> on_stopped;
  Timer stop_deadline;

 private:
  bool idle() const { return load.claims == 0 && load.executions == 0 && load.background == 0; }
};

}  // namespace einmal::detail
