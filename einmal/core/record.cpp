#include "einmal/core/record.hpp"

#include <algorithm>

namespace einmal {

namespace {

bool past(const std::optional<WallTime>& end, const Now& now) {
  return end && !now.expiry_paused && now.wall >= *end;
}

}  // namespace

Condition condition(const Record& record, const Now& now) {
  if (is_over(record, now)) return Condition::absent;
  switch (record.state) {
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
  if (past(record.expires, now) || !record.result) return Condition::tombstone;
  return record.state == State::completed ? Condition::completed : Condition::failed;
}

Condition condition(const std::optional<Record>& record, const Now& now) {
  return record ? condition(*record, now) : Condition::absent;
}

bool is_over(const Record& record, const Now& now) {
  switch (record.state) {
    case State::processing:
    case State::uncertain:
      return false;
    case State::freed:
      return past(record.expires, now);
    case State::completed:
    case State::failed:
      break;
  }
  if (!record.expires || record.policies.after_expiry == AfterExpiry::claim_anew)
    return past(record.expires, now);
  return past(*record.expires + record.policies.tombstone, now);
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
