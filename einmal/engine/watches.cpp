#include "einmal/engine/watches.hpp"

#include <algorithm>
#include <utility>

namespace einmal::detail {

std::size_t ScopeHash::operator()(const Scope& scope) const noexcept {
  const std::hash<std::string_view> hash;
  std::size_t sum = hash(scope.key());
  for (const std::string* part : {&scope.operation(), &scope.caller(), &scope.name_space()}) {
    sum = sum * 0x9e3779b97f4a7c15u + hash(*part);
  }
  return sum;
}

namespace {

std::string caller_of(const Scope& scope) {
  std::string out;
  append_length_prefixed(out, scope.name_space());
  return out + scope.caller();
}

}  // namespace

/// The waiters of one key and the read they share.
class Watch final : public Hook<Watch> {
 public:
  Watch(Watches& watches, const Scope& scope)
      : watches_(watches),
        scope_(scope),
        // Where the store announces changes, polling is only what catches a lost announcement.
        backoff_(
            watches.store_.capabilities().announces_changes ? milliseconds(250) : milliseconds(20),
            watches.store_.capabilities().announces_changes ? seconds(1) : milliseconds(500)),
        poll_(watches.timers_, [this] { read(); }) {}
  ~Watch() {
    if (call_) call_->forget();
  }

  const Scope& scope() const { return scope_; }

  void read();
  void look_again() {
    if (!call_) poll_.set(std::max(watches_.timers_.now(), read_at_ + watches_.shortest_gap()));
  }

  List<Waiter, Waiter> waiters;
  std::size_t size = 0;

 private:
  void found(Result<Answer> answer);
  void poll_later();
  void let_lapse();
  static std::optional<Heard> news(const std::optional<StoredRecord>& found,
                                   const RecordPtr& record, OperationId awaited);

  Watches& watches_;
  const Scope scope_;
  Backoff backoff_;
  Timer poll_;
  SmallCall* call_ = nullptr;
  BootTime read_at_{};
  std::uint64_t covered_ = 0;  ///< The last waiter that joined before the read was sent.
  std::optional<Duration> lease_left_;
};

void Watch::read() {
  if (call_) return;
  poll_.cancel();
  read_at_ = watches_.timers_.now();
  covered_ = watches_.joins_;
  call_ = SmallCall::send(watches_.mailbox_, StoreCall::read, request::ReadScope{scope_, true},
                          [this](Result<Answer> answer) {
                            call_ = nullptr;
                            found(std::move(answer));
                          });
}

void Watch::found(Result<Answer> answer) {
  auto* found = answer ? std::get_if<answer::Found>(&*answer) : nullptr;
  if (!found) return poll_later();
  const std::optional<StoredRecord> stored = std::move(found->record);
  lease_left_ = stored ? stored->lease_left : std::nullopt;
  if (stored && stored->condition == Condition::processing && lease_left_ == Duration::zero() &&
      stored->record.policies.on_lease_expiry == OnLeaseExpiry::uncertain) {
    return let_lapse();
  }
  const RecordPtr record = stored ? std::make_shared<const Record>(stored->record) : nullptr;
  // Who joined after the read was sent may wait for an attempt that it could not see.
  const std::uint64_t covered = covered_;
  Watches& watches = watches_;
  const Scope scope = scope_;
  watches.tell(*this, [&](const Waiter& waiter) -> std::optional<Heard> {
    if (waiter.joined_ > covered) return std::nullopt;
    return news(stored, record, waiter.awaited_);
  });
  const auto still = watches.watches_.find(scope);
  if (still == watches.watches_.end()) return;
  Watch& watch = *still->second;
  if (watch.covered_ < watches.joins_ && watch.waiters.front() &&
      watch.waiters.front()->joined_ > watch.covered_) {
    watch.read();
  } else {
    watch.poll_later();
  }
}

std::optional<Heard> Watch::news(const std::optional<StoredRecord>& found, const RecordPtr& record,
                                 OperationId awaited) {
  if (!found || record->operation_id != awaited) return heard::Released{};
  switch (found->condition) {
    case Condition::processing:
      if (found->lease_left == Duration::zero()) return heard::StillRunning{};
      return std::nullopt;
    case Condition::completed:
    case Condition::failed:
    case Condition::tombstone:
      return heard::Settled{record, found->condition};
    case Condition::uncertain:
      return heard::Uncertain{record};
    case Condition::absent:
      break;
  }
  // Freed had no effect; expired had one, so nobody may be told that it was released.
  if (record->state == State::freed) return heard::Released{};
  return heard::StillRunning{};
}

/// The lease is over and the record promises `uncertain`: any process may let it lapse, by the
/// event that never claims. Then the next read tells.
void Watch::let_lapse() {
  call_ = SmallCall::send(
      watches_.mailbox_, StoreCall::maintain,
      request::Transition{scope_, event::Overdue{}, nullptr, {}}, [this](Result<Answer> answer) {
        call_ = nullptr;
        const auto* decision = answer ? std::get_if<Decision>(&*answer) : nullptr;
        if (!decision || !std::holds_alternative<decision::BecameUncertain>(*decision)) {
          return poll_later();
        }
        watches_.observer_.overdue(1);
        read();
      });
}

void Watch::poll_later() {
  if (call_) return;
  const BootTime now = watches_.timers_.now();
  BootTime at = now + backoff_.next(watches_.random_);
  if (lease_left_ && *lease_left_ > Duration::zero()) {
    at = std::min(at, now + *lease_left_ + milliseconds(1));
  }
  poll_.set(std::max(at, read_at_ + watches_.shortest_gap()));
}

Watches::Watches(Store& store, std::shared_ptr<Mailbox> mailbox, TimerQueue& timers, Random& random,
                 Observer& observer, const EngineLimits& limits)
    : store_(store),
      mailbox_(std::move(mailbox)),
      timers_(timers),
      random_(random),
      observer_(observer),
      limits_(limits) {}

Watches::~Watches() = default;

Watches::Joined Watches::join(Waiter& waiter, const Scope& scope, OperationId awaited) {
  if (waiters_ >= limits_.waiters || limits_.waiters_per_key == 0) return Joined::queue_full;
  auto at = watches_.find(scope);
  if (at != watches_.end() && at->second->size >= limits_.waiters_per_key) {
    return Joined::queue_full;
  }
  if (limits_.waiters_per_caller > 0) {
    std::size_t& of_caller = by_caller_[caller_of(scope)];
    if (of_caller >= limits_.waiters_per_caller) return Joined::over_quota;
    ++of_caller;
  }
  const bool first = at == watches_.end();
  if (first) {
    if (watches_.empty()) store_.await_foreign_changes(true);
    at = watches_.emplace(scope, std::make_unique<Watch>(*this, scope)).first;
    in_order_.push_back(*at->second);
  }
  Watch& watch = *at->second;
  waiter.awaited_ = awaited;
  waiter.watch_ = &watch;
  waiter.joined_ = ++joins_;
  watch.waiters.push_back(waiter);
  ++watch.size;
  ++waiters_;
  // The attempt may have ended between the answer that made it wait and now.
  if (first) watch.read();
  return Joined::yes;
}

void Watches::leave(Waiter& waiter) {
  Watch* watch = std::exchange(waiter.watch_, nullptr);
  List<Waiter, Waiter>::remove(waiter);
  if (!watch) return;
  left(*watch);
  if (watch->size == 0) remove(*watch);
}

void Watches::left(Watch& watch) {
  --watch.size;
  --waiters_;
  if (limits_.waiters_per_caller == 0) return;
  const auto at = by_caller_.find(caller_of(watch.scope()));
  if (--at->second == 0) by_caller_.erase(at);
}

void Watches::remove(Watch& watch) {
  watches_.erase(watches_.find(watch.scope()));
  if (watches_.empty()) store_.await_foreign_changes(false);
}

void Watches::changed(const Scope& scope, OperationId operation, const Heard& news) {
  if (watches_.empty()) return;
  const auto at = watches_.find(scope);
  if (at == watches_.end()) return;
  tell(*at->second, [&](const Waiter& waiter) {
    return waiter.awaited_ == operation ? std::optional<Heard>(news) : std::nullopt;
  });
}

void Watches::look_again() {
  for (Watch* watch = in_order_.front(); watch; watch = in_order_.after(*watch)) {
    watch->look_again();
  }
}

void Watches::dismiss() {
  while (Watch* watch = in_order_.front()) {
    tell(*watch, [](const Waiter&) { return std::optional<Heard>(heard::StillRunning{}); });
  }
}

void Watches::clear() { watches_.clear(); }

void Watches::tell(Watch& watch, const News& news) {
  List<Waiter, Waiter> leaving;
  for (Waiter* waiter = watch.waiters.front(); waiter;) {
    Waiter* next = watch.waiters.after(*waiter);
    if (news(*waiter)) {
      waiter->watch_ = nullptr;
      leaving.push_back(*waiter);
      left(watch);
    }
    waiter = next;
  }
  if (watch.size == 0) remove(watch);
  while (Waiter* waiter = leaving.front()) {
    List<Waiter, Waiter>::remove(*waiter);
    const std::optional<Heard> what = news(*waiter);
    waiter->heard(*what);
  }
}

Duration Watches::shortest_gap() const {
  const Duration share = std::chrono::microseconds(100) * watches_.size();
  return std::max<Duration>(milliseconds(10), share);
}

}  // namespace einmal::detail
