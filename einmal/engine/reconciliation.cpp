#include "einmal/engine/reconciliation.hpp"

#include <algorithm>
#include <utility>

#include "einmal/engine/delays.hpp"

namespace einmal::detail {

namespace {

constexpr std::size_t page = 100;
/// More uncertain records than this wait for others to be settled.
constexpr std::size_t most_cases = 10'000;
constexpr std::size_t most_at_once = 8;

}  // namespace

Reconciliation::Reconciliation(Desk& desk)
    : desk_(desk),
      look_timer_(desk.timers, [this] { look({}); }),
      work_timer_(desk.timers, [this] { work(); }) {}

Reconciliation::~Reconciliation() { stop(); }

void Reconciliation::start(Reconciler& reconciler, std::string name_space, Duration interval) {
  reconciler_ = &reconciler;
  name_space_ = std::move(name_space);
  interval_ = interval;
  alive_ = std::make_shared<char>();
  look_timer_.set(desk_.now() + between(desk_.random, Duration::zero(), interval));
}

void Reconciliation::stop() {
  look_timer_.cancel();
  work_timer_.cancel();
  alive_.reset();
  if (looking_) std::exchange(looking_, nullptr)->forget();
  cases_.clear();
  at_work_ = 0;
}

void Reconciliation::look(std::string after) {
  if (after.empty() && !reconciler_->is_wanted()) {
    look_timer_.set(desk_.now() + jittered(desk_.random, interval_));
    return;
  }
  if (after.empty()) ++round_;
  request::List list;
  list.name_space = name_space_;
  list.conditions = {Condition::uncertain};
  list.limit = page;
  list.after = std::move(after);
  looking_ = SmallCall::send(
      desk_.mailbox, StoreCall::maintain, std::move(list), [this](Result<Answer> answer) {
        looking_ = nullptr;
        const auto* found_page = answer ? std::get_if<answer::Page>(&*answer) : nullptr;
        if (found_page) {
          for (const StoredRecord& record : found_page->records) found(record);
          if (!found_page->next.empty()) return look(found_page->next);
          round_ended();
        }
        look_timer_.set(desk_.now() + jittered(desk_.random, interval_));
        work();
      });
}

void Reconciliation::found(const StoredRecord& stored) {
  const auto rules = reconciler_->rules(stored.scope);
  if (!rules) return;
  auto at = cases_.find(stored.scope);
  const bool is_known =
      at != cases_.end() && at->second.record.record.generation == stored.record.generation;
  if (!is_known) {
    if (at != cases_.end() && at->second.at_work) return;  // The next look finds it again.
    if (at == cases_.end() && cases_.size() >= most_cases) return;
    at = cases_.insert_or_assign(stored.scope, Case(stored, *rules, desk_.now())).first;
    // Spread, since an outage makes many of them at once.
    at->second.due += between(desk_.random, Duration::zero(), rules->first_delay);
  }
  at->second.rules = *rules;  // As configured now.
  at->second.round = round_;
}

/// Whatever this round did not find was settled by somebody.
void Reconciliation::round_ended() {
  for (auto at = cases_.begin(); at != cases_.end();) {
    const bool is_gone = at->second.round != round_ && !at->second.at_work;
    at = is_gone ? cases_.erase(at) : std::next(at);
  }
}

void Reconciliation::work() {
  const BootTime now = desk_.now();
  std::optional<BootTime> next;
  for (auto& [scope, one] : cases_) {
    if (one.at_work || one.given_up) continue;
    if (one.due <= now && at_work_ < most_at_once) {
      ask(scope, one);
    } else {
      next = std::min(next.value_or(one.due), one.due);
    }
  }
  // With as many at work as may be, the next answer comes back here.
  if (next && at_work_ < most_at_once) work_timer_.set(std::max(*next, now));
}

void Reconciliation::ask(const Scope& scope, Case& one) {
  one.at_work = true;
  one.asked = desk_.now();
  ++at_work_;
  const Generation generation = one.record.record.generation;
  reconciler_->ask(one.record, [this, scope, generation,
                                alive = std::weak_ptr<char>(alive_)](OutcomeFinding finding) {
    if (!alive.expired()) answered(scope, generation, std::move(finding));
  });
}

Reconciliation::Case* Reconciliation::find(const Scope& scope, Generation generation) {
  const auto at = cases_.find(scope);
  const bool is_it = at != cases_.end() && at->second.record.record.generation == generation;
  return is_it ? &at->second : nullptr;
}

void Reconciliation::answered(const Scope& scope, Generation generation, OutcomeFinding finding) {
  Case* one = find(scope, generation);
  if (one == nullptr) return;
  if (auto* completed = std::get_if<finding::Completed>(&finding.what)) {
    return settle(scope, *one, event::Resolution::completed, std::move(completed->result),
                  std::move(finding.evidence));
  }
  if (auto* failed = std::get_if<finding::Failed>(&finding.what)) {
    return settle(scope, *one, event::Resolution::failed, std::move(failed->result),
                  std::move(finding.evidence));
  }
  one->at_work = false;
  --at_work_;
  if (std::holds_alternative<finding::Absent>(finding.what) && one->rules.quiescence) {
    const BootTime quiet = one->first_seen + *one->rules.quiescence;
    // What was not there before it was quiet may have come since.
    if (one->asked >= quiet) {
      one->at_work = true;
      ++at_work_;
      return settle(scope, *one, event::Resolution::freed, std::nullopt,
                    std::move(finding.evidence));
    }
    // It may appear any moment, and is asked for at the latest when it can be freed.
    desk_.observer.reconciled(scope, generation, Reconciled::unknown);
    put_off(*one);
    if (one->due > quiet)
      one->due = quiet + between(desk_.random, Duration::zero(), one->rules.first_delay);
    return work();
  }
  desk_.observer.reconciled(scope, generation, Reconciled::unknown);
  try_later(*one);
  work();
}

void Reconciliation::try_later(Case& one) {
  if (++one.unknown >= one.rules.tries) {
    one.given_up = true;
    desk_.observer.alarm(Alarm::reconciliation_given_up,
                         "an outcome stays unknown after every question that was allowed; settle "
                         "it with `einmal records resolve`");
    return;
  }
  put_off(one);
}

/// Full jitter over a delay that doubles: many that failed together do not ask together.
void Reconciliation::put_off(Case& one) {
  ++one.questions;
  Duration longest = one.rules.first_delay;
  for (unsigned n = 0; n < one.questions && longest < one.rules.longest_delay; ++n) longest *= 2;
  longest = std::min(longest, one.rules.longest_delay);
  one.due = desk_.now() + between(desk_.random, Duration::zero(), longest);
}

void Reconciliation::settle(const Scope& scope, Case& one, event::Resolution to,
                            std::optional<StoredResult> result, std::string evidence) {
  const Generation generation = one.record.record.generation;
  event::Resolve resolve;
  resolve.generation = generation;
  resolve.to = to;
  resolve.result = std::move(result);
  resolve.by = SettledBy::reconciler;
  request::Transition transition{
      scope, std::move(resolve), nullptr, {"reconciler:" + one.rules.name, std::move(evidence)}};
  SmallCall::send(
      desk_.mailbox, StoreCall::finish, std::move(transition),
      [this, scope, generation, to, alive = std::weak_ptr<char>(alive_)](Result<Answer> answer) {
        if (!alive.expired()) settled(scope, generation, to, answer);
      });
}

void Reconciliation::settled(const Scope& scope, Generation generation, event::Resolution to,
                             const Result<Answer>& answer) {
  Case* one = find(scope, generation);
  if (one == nullptr) return;
  one->at_work = false;
  --at_work_;
  if (!answer) {
    // Nothing is lost: the store says whether it is uncertain still.
    one->due = desk_.now() + between(desk_.random, Duration::zero(), one->rules.longest_delay);
    return work();
  }
  const auto* decision = std::get_if<Decision>(&*answer);
  const bool is_changed =
      decision == nullptr || std::holds_alternative<decision::Changed>(*decision);
  desk_.observer.reconciled(scope, generation,
                            is_changed                           ? Reconciled::changed
                            : to == event::Resolution::completed ? Reconciled::completed
                            : to == event::Resolution::failed    ? Reconciled::failed
                                                                 : Reconciled::freed);
  cases_.erase(scope);
  work();
}

}  // namespace einmal::detail
