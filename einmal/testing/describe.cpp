#include "einmal/testing/describe.hpp"

#include <algorithm>
#include <vector>

namespace einmal::testing {

namespace {

std::string text(Duration duration) { return std::to_string(duration.count()) + "us"; }
std::string text(WallTime time) { return text(time.time_since_epoch()); }
std::string text(BootTime time) { return text(time.time_since_epoch()); }
std::string text(Generation generation) { return "g" + std::to_string(number(generation)); }
std::string text(bool value) { return value ? "yes" : "no"; }
std::string text(std::uint64_t value) { return std::to_string(value); }
std::string text(const std::string& value) { return '"' + value + '"'; }
std::string text(State state) { return std::string(name(state)); }
std::string text(const Digest& digest) {
  return to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}
template <class E>
std::string code(E value) {
  return std::to_string(static_cast<unsigned>(value));
}

std::string text(const StoredResult& result) {
  return std::to_string(result.status) + " headers=" + to_hex(result.headers) +
         " body=" + to_hex(result.body) + " kept=" + code(result.body_kept) +
         " effect=" + code(result.effect) +
         " version=" + std::to_string(result.representation_version) +
         " resource=" + (result.resource_id ? text(*result.resource_id) : "none");
}

template <class T>
std::string text(const std::optional<T>& value) {
  return value ? text(*value) : "none";
}

std::string text(const Policies& policies) {
  return "(lease=" + text(policies.lease) + " on-expiry=" + code(policies.on_lease_expiry) +
         " retention=" + text(policies.retention) + " after=" + code(policies.after_expiry) +
         " tombstone=" + text(policies.tombstone) + ")";
}

std::string text(const std::optional<Record>& record) {
  return record ? describe(*record) : "no record";
}

std::string text(const StoredRecord& stored) {
  return to_hex(stored.scope.canonical_bytes()) + " " + std::string(name(stored.condition)) +
         " left=" + text(stored.lease_left) + " age=" + text(stored.age) + " " +
         describe(stored.record);
}

std::string text(const AuditRow& row) {
  const Audit& audit = row.audit;
  return text(row.at) + " " + (row.scope ? to_hex(row.scope->canonical_bytes()) : "store") +
         " operation=" + row.operation_id.text() + " " + std::string(name(audit.event)) + " " +
         text(audit.generation) + " " + text(audit.before) + "->" + text(audit.after) +
         " outcome=" + (audit.late_outcome ? code(*audit.late_outcome) : "none") +
         " late=" + text(audit.late_result) + " contradicts=" + text(audit.contradicts) + " by " +
         text(row.actor.who) + " " + text(row.actor.evidence);
}

std::string joined(std::string head, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) head += "\n    " + part;
  return head;
}

// --- decisions

std::string say(const decision::Execute& d) {
  return std::string("execute") + (d.takeover ? " takeover" : "") +
         (d.repeated ? " repeated" : "") + " | " + describe(d.record);
}
std::string say(const decision::Replay& d) { return "replay | " + describe(d.record); }
std::string say(const decision::Mismatch& d) { return "mismatch | " + describe(d.record); }
std::string say(const decision::OtherProfile& d) { return "other-profile | " + text(d.profile); }
std::string say(const decision::InProgress& d) {
  return "in-progress left=" + text(d.lease_left) + " age=" + text(d.age) + " | " +
         describe(d.record);
}
std::string say(const decision::Uncertain& d) {
  return (d.entered ? "uncertain now | " : "uncertain | ") + describe(d.record);
}
std::string say(const decision::Gone& d) { return "gone | " + describe(d.record); }
std::string say(const decision::Ok& d) { return "ok | " + text(d.record); }
std::string say(const decision::BecameUncertain& d) {
  return "became-uncertain | " + describe(d.record);
}
std::string say(const decision::Lost& d) {
  return std::string("lost") + (d.contradicts ? " contradicts" : "") + " seen as " +
         std::string(name(d.condition)) + " | " + text(d.record);
}
std::string say(const decision::Changed& d) { return "changed | " + text(d.record); }
std::string say(const decision::Unchanged&) { return "unchanged"; }

// --- answers

std::string say(const Decision& decision) { return describe(decision); }
std::string say(const answer::Found& a) {
  return a.record ? "found " + text(*a.record) : "found nothing";
}
std::string say(const answer::FoundProfile& a) { return "profile " + text(a.definition); }
std::string say(const answer::AuditRows& a) {
  std::vector<std::string> rows;
  for (const AuditRow& row : a.rows) rows.push_back(text(row));
  return joined("audit", rows);
}
std::string say(const answer::Moved& a) {
  return "moved changed=" + text(std::uint64_t{a.changed}) +
         " stripped=" + text(std::uint64_t{a.stripped}) + " more=" + text(a.more);
}
std::string say(const answer::Page& a) {
  std::vector<std::string> records;
  for (const StoredRecord& stored : a.records) records.push_back(text(stored));
  std::sort(records.begin(), records.end());
  return joined("page", records);
}
std::string say(const answer::Stats& a) {
  return "stats processing=" + text(a.processing.records) +
         " completed=" + text(a.completed.records) + " failed=" + text(a.failed.records) +
         " uncertain=" + text(a.uncertain.records) + " freed=" + text(a.freed.records) +
         " tombstone=" + text(a.tombstone.records) + " expired=" + text(a.expired.records) +
         " oldest: live=" + text(a.oldest_live) + " processing=" + text(a.oldest_processing) +
         " uncertain=" + text(a.oldest_uncertain) + " backlog=" + text(a.sweep_backlog) +
         " lag=" + text(a.sweep_lag) + " last=" + text(a.last_generation) +
         " paused=" + text(a.expiry_paused);
}
std::string say(const answer::Names& a) { return joined("names", a.names); }
std::string say(const answer::CallerCount& a) {
  return "caller live=" + text(a.live) + " uncertain=" + text(a.uncertain);
}
std::string say(const answer::Done&) { return "done"; }
std::string say(const answer::Workflows& a) {
  std::vector<std::string> rows;
  for (const WorkflowRow& row : a.rows) {
    rows.push_back(row.id.text() + " " + to_hex(row.scope.canonical_bytes()) + " " +
                   row.definition + " name=" + row.name + " input=" + text(row.input) +
                   " journal=" + text(row.journal) + " fence=" + text(row.fence) +
                   " stopped=" + text(row.stopped) + " generation=" + text(row.generation) +
                   " owner=" + row.owner.text());
  }
  return joined("workflows", rows);
}
std::string say(const answer::Advanced& a) { return "advanced " + code(a); }
std::string say(const answer::WorkflowCounts& a) {
  std::vector<std::string> rows;
  for (const auto& of : a.definitions) {
    rows.push_back(of.definition + " rows=" + text(of.rows) + " due=" + text(of.due) +
                   " stopped=" + text(of.stopped));
  }
  return joined("counts", rows);
}

}  // namespace

std::string describe(const Record& record) {
  std::string out = text(record.state) + " " + text(record.generation) +
                    " owner=" + record.owner.text() + " operation=" + record.operation_id.text() +
                    " attempts=" + std::to_string(record.attempts) +
                    " fingerprint=" + text(record.fingerprint.profile) + "/" +
                    text(record.fingerprint.digest) + " policies=" + text(record.policies);
  out += " lease=" + (record.lease ? text(record.lease->end) + "@" + record.lease->boot.text()
                                   : std::string("none"));
  return out + " cause=" + code(record.cause) + " by=" + code(record.settled_by) +
         " created=" + text(record.created) + " claimed=" + text(record.claimed) +
         " settled=" + text(record.settled) + " expires=" + text(record.expires) +
         " result=" + text(record.result);
}

std::string describe(const Decision& decision) {
  return std::visit([](const auto& d) { return say(d); }, decision);
}

std::string describe(const Result<Answer>& answer) {
  if (!answer) return "error " + code(answer.error().code);
  return std::visit([](const auto& a) { return say(a); }, *answer);
}

std::string_view name(State state) {
  switch (state) {
    case State::processing:
      return "processing";
    case State::completed:
      return "completed";
    case State::failed:
      return "failed";
    case State::uncertain:
      return "uncertain";
    case State::freed:
      return "freed";
  }
  return "unknown";
}

std::string_view name(Condition condition) {
  switch (condition) {
    case Condition::absent:
      return "absent";
    case Condition::processing:
      return "processing";
    case Condition::completed:
      return "completed";
    case Condition::failed:
      return "failed";
    case Condition::uncertain:
      return "uncertain";
    case Condition::tombstone:
      return "tombstone";
  }
  return "unknown";
}

std::string_view name(AuditEvent event) {
  switch (event) {
    case AuditEvent::taken_over:
      return "taken-over";
    case AuditEvent::became_uncertain:
      return "became-uncertain";
    case AuditEvent::late_completion:
      return "late-completion";
    case AuditEvent::late_result:
      return "late-result";
    case AuditEvent::resolved:
      return "resolved";
    case AuditEvent::forgotten:
      return "forgotten";
    case AuditEvent::doubted:
      return "doubted";
    case AuditEvent::revived:
      return "revived";
    case AuditEvent::late_release:
      return "late-release";
    case AuditEvent::generations_advanced:
      return "generations-advanced";
    case AuditEvent::time_accepted:
      return "time-accepted";
  }
  return "unknown";
}

}  // namespace einmal::testing
