#include "einmal/core/record.hpp"

#include <algorithm>

namespace einmal {

Condition condition(const std::optional<Record>& record, const Now& now) {
  if (!record) return Condition::absent;
  switch (record->state) {
    case State::processing:
      return Condition::processing;
    case State::uncertain:
      return Condition::uncertain;
    case State::freed:
      return Condition::absent;
    case State::completed:
    case State::failed:
      break;
  }
  const bool expired = !now.expiry_paused && record->expires && now.wall >= *record->expires;
  if (!expired) return record->state == State::completed ? Condition::completed : Condition::failed;
  if (record->policies.after_expiry == AfterExpiry::refuse &&
      now.wall < *record->expires + record->policies.tombstone) {
    return Condition::tombstone;
  }
  return Condition::absent;
}

bool is_live(const Record& record, const Now& now) {
  return condition(record, now) != Condition::absent;
}

std::optional<Duration> lease_left(const Record& record, const Now& now) {
  if (!record.lease || !record.policies.lease) return std::nullopt;
  if (record.lease->boot != now.boot_id) return Duration::zero();
  return std::clamp(record.lease->end - now.boot, Duration::zero(), *record.policies.lease);
}

}  // namespace einmal
