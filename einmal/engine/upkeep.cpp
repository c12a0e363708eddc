#include "einmal/engine/upkeep.hpp"

#include <utility>

#include "einmal/engine/delays.hpp"

namespace einmal::detail {

namespace {

constexpr std::size_t batch = 200;
/// Between two batches of one round, so that requests get their turn at the store.
constexpr Duration breath = milliseconds(5);

}  // namespace

Upkeep::Upkeep(Desk& desk)
    : desk_(desk),
      sweep_timer_(desk.timers,
                   [this] {
                     if (sweep_next_) {
                       sweep();
                     } else {
                       find_overdue();
                     }
                   }),
      measure_timer_(desk.timers, [this] { measure(); }) {}

Upkeep::~Upkeep() { stop(); }

void Upkeep::start_sweeping(Duration interval) {
  sweep_interval_ = interval;
  pause(sweep_timer_, between(desk_.random, Duration::zero(), interval));
}

void Upkeep::start_measuring(Duration interval) {
  measure_interval_ = interval;
  pause(measure_timer_, between(desk_.random, Duration::zero(), interval));
}

void Upkeep::stop() {
  sweep_timer_.cancel();
  measure_timer_.cancel();
  if (sweeping_) std::exchange(sweeping_, nullptr)->forget();
  if (measuring_) std::exchange(measuring_, nullptr)->forget();
}

void Upkeep::find_overdue() {
  sweeping_ = SmallCall::send(
      desk_.mailbox, StoreCall::maintain, request::Overdue{batch}, [this](Result<Answer> answer) {
        sweeping_ = nullptr;
        const auto* moved = answer ? std::get_if<answer::Moved>(&*answer) : nullptr;
        if (!moved) return pause(sweep_timer_, jittered(desk_.random, sweep_interval_));
        if (moved->changed > 0) desk_.observer.overdue(moved->changed);
        sweep_next_ = !moved->more;
        pause(sweep_timer_, breath);
      });
}

void Upkeep::sweep() {
  sweeping_ = SmallCall::send(
      desk_.mailbox, StoreCall::maintain, request::Sweep{batch}, [this](Result<Answer> answer) {
        sweeping_ = nullptr;
        const auto* moved = answer ? std::get_if<answer::Moved>(&*answer) : nullptr;
        if (moved && (moved->changed > 0 || moved->stripped > 0)) {
          desk_.observer.swept(moved->changed, moved->stripped);
        }
        if (moved && moved->more) return pause(sweep_timer_, breath);
        sweep_next_ = false;
        pause(sweep_timer_, jittered(desk_.random, sweep_interval_));
      });
}

void Upkeep::measure() {
  measuring_ = SmallCall::send(
      desk_.mailbox, StoreCall::maintain, request::Stats{}, [this](Result<Answer> answer) {
        measuring_ = nullptr;
        if (const auto* stats = answer ? std::get_if<answer::Stats>(&*answer) : nullptr) {
          measured(*stats);
        }
        pause(measure_timer_, jittered(desk_.random, measure_interval_));
      });
}

void Upkeep::measured(const answer::Stats& stats) {
  desk_.observer.measured(stats);
  if (stats.expiry_paused && !expiry_was_paused_) {
    desk_.observer.alarm(Alarm::expiry_paused,
                         "the wall clock jumped ahead; nothing expires until it agrees with the "
                         "monotonic clock or an operator accepts it (accept_time)");
  }
  expiry_was_paused_ = stats.expiry_paused;
}

}  // namespace einmal::detail
