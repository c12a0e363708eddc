#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

#include "einmal/engine/delays.hpp"
#include "einmal/engine/engine.hpp"
#include "einmal/engine/linked_list.hpp"
#include "einmal/engine/mailbox.hpp"
#include "einmal/engine/timer_queue.hpp"

namespace einmal::detail {

struct ScopeHash {
  std::size_t operator()(const Scope& scope) const noexcept;
};

/// What a waiter hears about the attempt it waits for.
namespace heard {
struct Settled {
  RecordPtr record;
  Condition condition;  ///< completed, failed or tombstone.
};
struct Uncertain {
  RecordPtr record;
};
struct Released {};      ///< Released, freed, or its record gone.
struct StillRunning {};  ///< Nothing more will be heard now: the lease is over under takeover.
}  // namespace heard
using Heard = std::variant<heard::Settled, heard::Uncertain, heard::Released, heard::StillRunning>;

class Watch;

/// One duplicate in the wait queue. Destroying it leaves the queue.
class Waiter : public Hook<Waiter> {
 public:
  /// Called once, after it left the queue; may delete this.
  virtual void heard(const Heard& news) = 0;
  virtual ~Waiter() = default;

 private:
  friend class Watches;
  friend class Watch;
  OperationId awaited_;  ///< The operation whose end it waits for.
  Watch* watch_ = nullptr;
  std::uint64_t joined_ = 0;
};

/// Duplicates that wait for the attempt of another request. They never claim: one watch for each
/// key reads for all its waiters, and attempts of this process wake them from the store's answer
/// without a read. No resource of the store is held in between.
class Watches {
 public:
  Watches(Store& store, std::shared_ptr<Mailbox> mailbox, TimerQueue& timers, Random& random,
          Observer& observer, const EngineLimits& limits);
  ~Watches();

  enum class Joined { yes, queue_full, over_quota };
  /// Puts `waiter` into the queue of `scope`, unless the key's or the engine's queue is full, or
  /// its caller waits for too much.
  Joined join(Waiter& waiter, const Scope& scope, OperationId awaited);
  /// Takes it out again; a no-op if it heard.
  void leave(Waiter& waiter);
  std::size_t waiters() const { return waiters_; }

  /// An owner of this process was answered: whoever waits for `operation` under `scope` hears it.
  void changed(const Scope& scope, OperationId operation, const Heard& news);
  /// Another process may have changed something.
  void look_again();
  /// Everybody hears StillRunning.
  void dismiss();
  /// Forgets everybody; the engine goes away.
  void clear();

 private:
  friend class Watch;
  using News = std::function<std::optional<Heard>(const Waiter&)>;

  /// Whoever `news` has something for leaves the queue, then hears it. The watch may be gone
  /// afterwards, and another may stand in its place.
  void tell(Watch& watch, const News& news);
  void remove(Watch& watch);
  void left(Watch& watch);
  /// Between two reads of one watch, so that all watches together read at most 10,000 times a
  /// second however often others change the store.
  Duration shortest_gap() const;

  Store& store_;
  std::shared_ptr<Mailbox> mailbox_;
  TimerQueue& timers_;
  Random& random_;
  Observer& observer_;
  const EngineLimits& limits_;
  std::unordered_map<Scope, std::unique_ptr<Watch>, ScopeHash> watches_;
  List<Watch, Watch> in_order_;
  std::unordered_map<std::string, std::size_t> by_caller_;  ///< Waiters, where there is a quota.
  std::size_t waiters_ = 0;
  std::uint64_t joins_ = 0;
};

}  // namespace einmal::detail
