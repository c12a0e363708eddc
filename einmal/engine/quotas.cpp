#include "einmal/engine/quotas.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace einmal::detail {

namespace {

constexpr std::size_t most_entries = 16 * 1024;
/// A count younger than this is fresh enough to refuse by.
constexpr Duration fresh = seconds(1);

/// A part of a limit; without a limit, more than will ever be counted.
std::int64_t share(std::uint64_t limit, std::uint64_t parts, std::int64_t have = 0) {
  constexpr auto never = std::numeric_limits<std::int64_t>::max();
  if (limit == 0) return never;
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(limit) - have) /
         static_cast<std::int64_t>(parts);
}

}  // namespace

struct Quotas::Entry : Hook<Entry> {
  Key key;
  std::string name_space, caller;
  std::int64_t live = 0, uncertain = 0;  ///< As counted, and what this process did since.
  std::int64_t created_since = 0, uncertain_since = 0;
  std::int64_t recount_after_created = 0, recount_after_uncertain = 0;
  std::optional<BootTime> counted_at;
  SmallCall* counting = nullptr;
  std::vector<std::function<void()>> waiting;  ///< For the count that is on its way.

  ~Entry() {
    if (counting) counting->forget();
  }
};

Quotas::Quotas(std::shared_ptr<Mailbox> mailbox, TimerQueue& timers, Random& random,
               const EngineLimits& limits)
    : mailbox_(std::move(mailbox)), timers_(timers), random_(random), limits_(limits) {}

Quotas::~Quotas() = default;

void Quotas::clear() { entries_.clear(); }

Quotas::Entry& Quotas::entry(const Scope& scope) {
  wanted_.clear();
  append_length_prefixed(wanted_, scope.name_space());
  wanted_ += scope.caller();
  auto at = entries_.find(wanted_);
  if (at == entries_.end()) {
    if (entries_.size() >= most_entries && !by_use_.front()->counting) {
      entries_.erase(entries_.find(by_use_.front()->key));
    }
    at = entries_.emplace(wanted_, std::make_unique<Entry>()).first;
    Entry& made = *at->second;
    made.key = wanted_;
    made.name_space = scope.name_space();
    made.caller = scope.caller();
    // A caller not counted yet may have many records from before, uncertain ones above all.
    const std::int64_t soon =
        std::min(share(limits_.live_per_caller, 16), share(limits_.uncertain_per_caller, 16));
    made.recount_after_created = made.recount_after_uncertain = soon;
  }
  Entry& found = *at->second;
  by_use_.push_back(found);
  return found;
}

bool Quotas::over(const Entry& entry) const {
  const auto reached = [](std::int64_t have, std::uint64_t limit) {
    return limit > 0 && have >= static_cast<std::int64_t>(limit);
  };
  return reached(entry.live, limits_.live_per_caller) ||
         reached(entry.uncertain, limits_.uncertain_per_caller);
}

bool Quotas::within(const Scope& scope) {
  if (!enabled()) return true;
  const Entry& known = entry(scope);
  // With a limit so small that not even the first additions may go uncounted, ask.
  const bool counted = known.counted_at || known.recount_after_created > 0;
  return counted && !over(known);
}

void Quotas::ask(const Scope& scope, std::function<void(Verdict)> done) {
  SmallCall::send(mailbox_, StoreCall::read, request::ReadScope{scope, false},
                  [this, scope, done = std::move(done)](Result<Answer> answer) {
                    const auto* found = answer ? std::get_if<answer::Found>(&*answer) : nullptr;
                    const bool repeat =
                        found && found->record && found->record->condition != Condition::absent;
                    if (!found || repeat) return done(std::nullopt);
                    judge(scope, done);
                  });
}

void Quotas::judge(const Scope& scope, std::function<void(Verdict)> done) {
  Entry& known = entry(scope);
  if (known.counted_at && timers_.now() - *known.counted_at < fresh) return done(verdict(known));
  known.waiting.push_back([this, scope, done = std::move(done)] { done(verdict(entry(scope))); });
  count(known);
}

Quotas::Verdict Quotas::verdict(const Entry& known) {
  if (!known.counted_at || !over(known)) return std::nullopt;
  return begun::OverQuota{jittered(random_, seconds(10))};
}

void Quotas::created(const Scope& scope) {
  if (!enabled()) return;
  Entry& known = entry(scope);
  ++known.live;
  ++known.created_since;
  count_if_due(known);
}

void Quotas::released(const Scope& scope) {
  if (enabled()) --entry(scope).live;
}

void Quotas::became_uncertain(const Scope& scope) {
  if (!enabled()) return;
  Entry& known = entry(scope);
  ++known.uncertain;
  ++known.uncertain_since;
  count_if_due(known);
}

void Quotas::count_if_due(Entry& known) {
  if (over(known)) return;  // Counted when the next one asks.
  if (known.created_since > known.recount_after_created ||
      known.uncertain_since > known.recount_after_uncertain) {
    count(known);
  }
}

void Quotas::count(Entry& known) {
  if (known.counting) return;
  known.counting = SmallCall::send(mailbox_, StoreCall::read,
                                   request::CountCaller{known.name_space, known.caller},
                                   [this, &known](Result<Answer> answer) {
                                     known.counting = nullptr;
                                     counted(known, answer);
                                   });
}

void Quotas::counted(Entry& known, const Result<Answer>& answer) {
  if (const auto* count = answer ? std::get_if<answer::CallerCount>(&*answer) : nullptr) {
    known.live = static_cast<std::int64_t>(count->live);
    known.uncertain = static_cast<std::int64_t>(count->uncertain);
    known.counted_at = timers_.now();
    known.recount_after_created = share(limits_.live_per_caller, 2, known.live);
    known.recount_after_uncertain = share(limits_.uncertain_per_caller, 2, known.uncertain);
  }
  known.created_since = known.uncertain_since = 0;
  for (const auto& waiting : std::exchange(known.waiting, {})) waiting();
}

}  // namespace einmal::detail
