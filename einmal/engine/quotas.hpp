#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "einmal/engine/delays.hpp"
#include "einmal/engine/engine.hpp"
#include "einmal/engine/linked_list.hpp"
#include "einmal/engine/mailbox.hpp"
#include "einmal/engine/timer_queue.hpp"

namespace einmal::detail {

/// Quotas per caller, approximate: the store's count of a caller is kept and what this process adds
/// is added to it. It is counted anew when half of the room that was left is used up, and before
/// anybody is refused, so a caller that stays below its limits costs a handful of counts.
class Quotas {
 public:
  using Verdict = std::optional<begun::OverQuota>;

  Quotas(std::shared_ptr<Mailbox> mailbox, TimerQueue& timers, Random& random,
         const EngineLimits& limits);
  ~Quotas();

  /// No need to ask: the caller is well known to be within its limits.
  bool within(const Scope& scope);
  /// Reads first: a request whose key has a record is a repeat and never over. When the store does
  /// not answer, the verdict is "not over": the claim will tell.
  void ask(const Scope& scope, std::function<void(Verdict)> done);

  /// This process created a record; one of its records is gone, or became uncertain.
  void created(const Scope& scope);
  void released(const Scope& scope);
  void became_uncertain(const Scope& scope);
  /// Forgets everything; the engine goes away.
  void clear();

 private:
  struct Entry;
  using Key = std::string;  ///< Namespace and caller, length-prefixed.

  Entry& entry(const Scope& scope);
  bool over(const Entry& entry) const;
  void count_if_due(Entry& entry);
  void count(Entry& entry);
  void counted(Entry& entry, const Result<Answer>& answer);
  bool enabled() const { return limits_.live_per_caller > 0 || limits_.uncertain_per_caller > 0; }
  void judge(const Scope& scope, std::function<void(Verdict)> done);
  Verdict verdict(const Entry& entry);

  std::shared_ptr<Mailbox> mailbox_;
  TimerQueue& timers_;
  Random& random_;
  const EngineLimits& limits_;
  std::unordered_map<Key, std::unique_ptr<Entry>> entries_;
  List<Entry, Entry> by_use_;  ///< Least recently used first.
  Key wanted_;                 ///< Scratch, to look up without an allocation.
};

}  // namespace einmal::detail
