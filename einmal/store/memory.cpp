#include "einmal/store/memory.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "einmal/store/check_request.hpp"

namespace einmal {

namespace {

Bytes drawn(Random& random, std::size_t size) {
  Bytes bytes(size, '\0');
  random.fill(bytes.data(), bytes.size());
  return bytes;
}

Capabilities of_memory() {
  Capabilities capabilities;
  capabilities.name = "memory";
  capabilities.durable = false;
  capabilities.workflows = true;
  return capabilities;
}

StoredRecord seen(const Scope& scope, const Record& record, const Now& now, bool with_body) {
  StoredRecord stored{scope, record, condition(record, now), std::nullopt,
                      std::max(Duration::zero(), now.wall - record.claimed)};
  if (record.state == State::processing) stored.lease_left = lease_left(record, now);
  if (!with_body && stored.record.result) {
    stored.record.result->headers.clear();
    stored.record.result->body.clear();
  }
  return stored;
}

/// When Sweep has something to do with `record`; nothing: never as it stands.
std::optional<WallTime> sweep_due(const Record& record) {
  if (record.state == State::processing || record.state == State::uncertain) return std::nullopt;
  if (!record.expires) return std::nullopt;
  const bool stripped_tombstone = record.state != State::freed && !record.result &&
                                  record.policies.after_expiry == AfterExpiry::refuse;
  return stripped_tombstone ? *record.expires + record.policies.tombstone : *record.expires;
}

std::uint64_t bytes_of(const Record& record) {
  if (!record.result) return 0;
  const StoredResult& result = *record.result;
  return result.headers.size() + result.body.size() +
         (result.resource_id ? result.resource_id->size() : 0);
}

answer::Stats::PerCondition& slot(answer::Stats& stats, const Record& record, const Now& now) {
  if (is_over(record, now)) return stats.expired;
  switch (condition(record, now)) {
    case Condition::processing:
      return stats.processing;
    case Condition::completed:
      return stats.completed;
    case Condition::failed:
      return stats.failed;
    case Condition::uncertain:
      return stats.uncertain;
    case Condition::tombstone:
      return stats.tombstone;
    case Condition::absent:
      break;
  }
  return stats.freed;
}

void raise(std::optional<Duration>& oldest, Duration age) {
  oldest = std::max(oldest.value_or(Duration::zero()), age);
}

}  // namespace

MemoryStore::MemoryStore(const Clock& clock, Random& random, MemoryOptions options)
    : capabilities_(of_memory()),
      clock_(clock),
      options_(options),
      digest_secret_(drawn(random, 32)) {}

void MemoryStore::on_foreign_change(std::function<void()>) {}
void MemoryStore::await_foreign_changes(bool) {}

void MemoryStore::submit(Command& command) {
  Result<Answer> answer = run(command.request());
  command.completed(std::move(answer));
}

Result<Answer> MemoryStore::run(const Request& request) {
  if (auto checked = check_request(request); !checked) return pass_on(checked);
  const std::lock_guard lock(mutex_);
  const Now now = look();
  return std::visit([&](const auto& r) { return on(r, now); }, request);
}

Now MemoryStore::look() {
  Now now{clock_.wall_now(), clock_.boot_now(), clock_.boot_id(), false};
  now.expiry_paused = guard_.look({now.wall, now.boot, now.boot_id});
  if (options_.leases_on_wall_clock) {
    now.boot = BootTime(now.wall.time_since_epoch());
    now.boot_id = {};
  }
  return now;
}

bool MemoryStore::CanonicalOrder::operator()(const Scope& a, const Scope& b) const {
  const auto by_length_first = [](const std::string& x, const std::string& y) {
    if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
    return x.compare(y);
  };
  if (const int order = by_length_first(a.name_space(), b.name_space())) return order < 0;
  if (const int order = by_length_first(a.caller(), b.caller())) return order < 0;
  if (const int order = by_length_first(a.operation(), b.operation())) return order < 0;
  return by_length_first(a.key(), b.key()) < 0;
}

// --- one event on one scope

std::optional<Record> MemoryStore::record_of(const Scope& scope) const {
  const auto found = records_.find(scope);
  return found == records_.end() ? std::nullopt : std::optional(found->second);
}

Answer MemoryStore::on(const request::Transition& transition, const Now& now) {
  Event event = transition.event;
  if (auto* claim = std::get_if<event::Claim>(&event))
    claim->generation = Generation{last_generation_ + 1};
  Decision decision = step(transition.scope, event, transition.actor, now);
  if (const auto* execute = std::get_if<decision::Execute>(&decision);
      execute && !execute->repeated) {
    ++last_generation_;
    if (transition.profile && !execute->takeover)
      profiles_.emplace(transition.profile->id, transition.profile->definition);
  }
  return decision;
}

Decision MemoryStore::step(const Scope& scope, const Event& event, const Actor& actor,
                           const Now& now) {
  const std::optional<Record> before = record_of(scope);
  Step step = options_.decide(before, event, now);
  if (step.audit) {
    const OperationId operation = step.audit->before ? before->operation_id : OperationId{};
    audit_.push_back({now.wall, scope, operation, std::move(*step.audit), actor});
  }
  if (step.change == Step::Change::put) put(scope, std::move(*step.record));
  if (step.change == Step::Change::erase) erase(scope);
  return std::move(step.decision);
}

void MemoryStore::put(const Scope& scope, Record record) {
  erase(scope);
  scope_of_operation_.insert_or_assign(record.operation_id, scope);
  records_.emplace(scope, std::move(record));
}

void MemoryStore::erase(const Scope& scope) {
  const auto found = records_.find(scope);
  if (found == records_.end()) return;
  scope_of_operation_.erase(found->second.operation_id);
  records_.erase(found);
}

// --- reading

Answer MemoryStore::on(const request::ReadScope& read, const Now& now) {
  const auto found = records_.find(read.scope);
  if (found == records_.end()) return answer::Found{};
  return answer::Found{seen(found->first, found->second, now, read.with_body)};
}

Answer MemoryStore::on(const request::ReadOperation& read, const Now& now) {
  const auto found = scope_of_operation_.find(read.id);
  if (found == scope_of_operation_.end()) return answer::Found{};
  return answer::Found{seen(found->second, records_.at(found->second), now, read.with_body)};
}

Answer MemoryStore::on(const request::ReadProfile& read, const Now&) {
  const auto found = profiles_.find(read.id);
  if (found == profiles_.end()) return answer::FoundProfile{};
  return answer::FoundProfile{found->second};
}

Answer MemoryStore::on(const request::ReadAudit& read, const Now&) {
  answer::AuditRows found;
  const std::size_t limit = bounded(read.limit);
  for (auto row = audit_.rbegin(); row != audit_.rend() && found.rows.size() < limit; ++row) {
    if (read.scope && row->scope != read.scope) continue;
    if (read.id && row->operation_id != *read.id) continue;
    found.rows.push_back(*row);
  }
  std::reverse(found.rows.begin(), found.rows.end());
  return found;
}

Answer MemoryStore::on(const request::List& list, const Now& now) {
  answer::Page page;
  const std::size_t limit = bounded(list.limit);
  const auto wanted = [&](const StoredRecord& stored) {
    const Scope& scope = stored.scope;
    if (list.name_space && scope.name_space() != *list.name_space) return false;
    if (list.caller && scope.caller() != *list.caller) return false;
    if (list.operation && scope.operation() != *list.operation) return false;
    if (list.min_age && stored.age < *list.min_age) return false;
    return list.conditions.empty() || std::find(list.conditions.begin(), list.conditions.end(),
                                                stored.condition) != list.conditions.end();
  };
  for (const auto& [scope, record] : records_) {
    if (!list.after.empty() && scope.canonical_bytes() <= list.after) continue;
    StoredRecord stored = seen(scope, record, now, false);
    if (!wanted(stored)) continue;
    if (page.records.size() == limit) {
      page.next = page.records.back().scope.canonical_bytes();
      break;
    }
    page.records.push_back(std::move(stored));
  }
  return page;
}

Answer MemoryStore::on(const request::Stats&, const Now& now) {
  answer::Stats stats;
  for (const auto& [scope, record] : records_) {
    auto& counted = slot(stats, record, now);
    ++counted.records;
    counted.bytes += bytes_of(record);
    const Duration age = std::max(Duration::zero(), now.wall - record.claimed);
    if (is_live(record, now)) raise(stats.oldest_live, age);
    if (record.state == State::processing) raise(stats.oldest_processing, age);
    if (record.state == State::uncertain) raise(stats.oldest_uncertain, age);
    const auto due = sweep_due(record);
    if (due && !now.expiry_paused && now.wall >= *due) {
      ++stats.sweep_backlog;
      raise(stats.sweep_lag, now.wall - *due);
    }
  }
  stats.last_generation = Generation{last_generation_};
  stats.expiry_paused = now.expiry_paused;
  return stats;
}

Answer MemoryStore::on(const request::LiveOperations& live, const Now& now) {
  std::set<std::string> names;
  for (const auto& [scope, record] : records_) {
    if (scope.name_space() == live.name_space && is_live(record, now))
      names.insert(scope.operation());
  }
  return answer::Names{{names.begin(), names.end()}};
}

Answer MemoryStore::on(const request::CountCaller& count, const Now& now) {
  answer::CallerCount counted;
  for (const auto& [scope, record] : records_) {
    if (scope.name_space() != count.name_space || scope.caller() != count.caller) continue;
    if (is_live(record, now)) ++counted.live;
    if (record.state == State::uncertain) ++counted.uncertain;
  }
  return counted;
}

// --- bounded batches

Answer MemoryStore::on(const request::Overdue& overdue, const Now& now) {
  std::vector<Scope> due;
  for (const auto& [scope, record] : records_) {
    if (record.state == State::processing && record.lease) due.push_back(scope);
  }
  answer::Moved moved;
  const std::size_t limit = bounded(overdue.limit);
  for (const Scope& scope : due) {
    if (moved.changed == limit) {
      const Step next = options_.decide(records_.at(scope), event::Overdue{}, now);
      moved.more = std::holds_alternative<decision::BecameUncertain>(next.decision);
      if (moved.more) break;
      continue;
    }
    const Decision decision = step(scope, event::Overdue{}, {}, now);
    if (std::holds_alternative<decision::BecameUncertain>(decision)) ++moved.changed;
  }
  return moved;
}

Answer MemoryStore::on(const request::Sweep& sweep, const Now& now) {
  if (now.expiry_paused) return answer::Moved{};
  std::vector<Scope> due;
  for (const auto& [scope, record] : records_) {
    const auto since = sweep_due(record);
    if (since && now.wall >= *since) due.push_back(scope);
  }
  answer::Moved moved;
  const std::size_t limit = bounded(sweep.limit);
  moved.more = due.size() > limit;
  if (moved.more) due.erase(due.begin() + static_cast<std::ptrdiff_t>(limit), due.end());
  for (const Scope& scope : due) {
    const Decision decision = step(scope, event::Sweep{}, {}, now);
    const auto* ok = std::get_if<decision::Ok>(&decision);
    if (!ok) continue;
    ++(ok->record ? moved.stripped : moved.changed);
  }
  drop_old_audit(limit, now);
  return moved;
}

void MemoryStore::drop_old_audit(std::size_t limit, const Now& now) {
  std::size_t dropped = 0;
  std::erase_if(audit_, [&](const AuditRow& row) {
    const bool old = now.wall >= row.at + options_.audit_retention && dropped < limit;
    dropped += old ? 1 : 0;
    return old;
  });
}

// --- acts on the whole store

void MemoryStore::note_of_the_store(AuditEvent event, const Actor& actor, const Now& now) {
  Audit audit;
  audit.event = event;
  audit.generation = Generation{last_generation_};
  audit_.push_back({now.wall, std::nullopt, OperationId{}, std::move(audit), actor});
}

Answer MemoryStore::on(const request::AdvanceGenerations& advance, const Now& now) {
  last_generation_ += std::uint64_t{1} << 32;
  note_of_the_store(AuditEvent::generations_advanced, advance.actor, now);
  return answer::Done{};
}

Answer MemoryStore::on(const request::AcceptTime& accept, const Now& now) {
  guard_.accept({clock_.wall_now(), clock_.boot_now(), clock_.boot_id()});
  note_of_the_store(AuditEvent::time_accepted, accept.actor, now);
  return answer::Done{};
}

}  // namespace einmal
