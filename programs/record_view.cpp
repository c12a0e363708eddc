#include "record_view.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <iterator>
#include <utility>

#include "einmal/fingerprint/json_grammar.hpp"

namespace einmal::programs {

namespace json = boost::json;

namespace {

std::string shown_key(const Scope& scope, const View& view) {
  return view.reveal ? scope.key() : view.digest.of(scope);
}

std::string shown_caller(const Scope& scope, const View& view) {
  return view.reveal ? scope.caller() : view.digest.of_caller(scope.name_space(), scope.caller());
}

json::value or_null(const std::optional<WallTime>& time) {
  return time ? json::value(in_words(*time)) : json::value(nullptr);
}

/// What stands in the table and in JSON under "reason".
std::string reason_of(const Record& record) {
  if (record.state == State::uncertain) return std::string(name(record.cause));
  if (record.result && record.result->body_kept != BodyKept::kept)
    return "body " + std::string(name(record.result->body_kept));
  return {};
}

json::object object_of(const StoredRecord& stored, const View& view) {
  const auto& record = stored.record;
  json::object object;
  object["namespace"] = stored.scope.name_space();
  object["caller"] = shown_caller(stored.scope, view);
  object["operation"] = stored.scope.operation();
  object["key"] = shown_key(stored.scope, view);
  object["state"] = std::string(name(record.state));
  object["generation"] = number(record.generation);
  object["attempts"] = record.attempts;
  object["created"] = in_words(record.created);
  object["settled"] = or_null(record.settled);
  object["expires"] = or_null(record.expires);
  object["status"] = record.result ? json::value(record.result->status) : json::value(nullptr);
  object["age_seconds"] = std::chrono::duration_cast<std::chrono::seconds>(stored.age).count();
  const bool known = record.result && record.result->effect == Effect::known;
  object["effect"] =
      record.result ? json::value(known ? "known" : "unknown") : json::value(nullptr);
  const auto reason = reason_of(record);
  object["reason"] = reason.empty() ? json::value(nullptr) : json::value(reason);
  object["id"] = record.operation_id.text();
  return object;
}

json::object object_of(const AuditRow& row) {
  json::object object;
  object["at"] = in_words(row.at);
  object["event"] = std::string(name(row.audit.event));
  object["generation"] = number(row.audit.generation);
  const auto state = [](const std::optional<State>& value) {
    return value ? json::value(std::string(name(*value))) : json::value(nullptr);
  };
  object["before"] = state(row.audit.before);
  object["after"] = state(row.audit.after);
  object["who"] = row.actor.who;
  object["evidence"] = row.actor.evidence;
  object["contradicts"] = row.audit.contradicts;
  if (row.audit.late_result) object["late_status"] = row.audit.late_result->status;
  return object;
}

json::array array_of(const std::vector<AuditRow>& audit) {
  json::array rows;
  for (const auto& row : audit) rows.push_back(object_of(row));
  return rows;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// As a string where JSON can say it, else in hexadecimal under NAME_hex.
void add_bytes(json::object& object, std::string_view name, std::string_view bytes) {
  if (is_utf8(bytes)) {
    object[name] = bytes;
    return;
  }
  std::string hex;
  for (const unsigned char byte : bytes) fmt::format_to(std::back_inserter(hex), "{:02x}", byte);
  object[std::string(name) + "_hex"] = hex;
}

/// Text that others gave, without what a terminal would obey.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

/// Columns as wide as what stands in them.
std::string table_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string condition_words(const StoredRecord& stored) {
  if (stored.condition == Condition::absent) {
    return stored.record.state == State::freed ? "freed" : "expired";
  }
  return std::string(name(stored.condition));
}

}  // namespace

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

std::string_view name(UncertainCause cause) {
  switch (cause) {
    case UncertainCause::none:
      return "none";
    case UncertainCause::lease_end:
      return "lease ended";
    case UncertainCause::outcome_unknown:
      return "outcome unknown";
    case UncertainCause::after_takeover:
      return "after a takeover";
    case UncertainCause::owner_stopped:
      return "owner stopped";
    case UncertainCause::operator_doubt:
      return "operator's doubt";
  }
  return "unknown";
}

std::string_view name(BodyKept kept) {
  switch (kept) {
    case BodyKept::kept:
      return "kept";
    case BodyKept::too_large:
      return "too large";
    case BodyKept::streaming:
      return "streaming";
    case BodyKept::no_room:
      return "no room";
    case BodyKept::not_supplied:
      return "not supplied";
    case BodyKept::by_choice:
      return "left out by choice";
  }
  return "unknown";
}

std::string_view name(AuditEvent event) {
  switch (event) {
    case AuditEvent::taken_over:
      return "taken over";
    case AuditEvent::became_uncertain:
      return "became uncertain";
    case AuditEvent::late_completion:
      return "late completion";
    case AuditEvent::late_result:
      return "late result";
    case AuditEvent::resolved:
      return "resolved";
    case AuditEvent::forgotten:
      return "forgotten";
    case AuditEvent::doubted:
      return "doubted";
    case AuditEvent::revived:
      return "revived";
    case AuditEvent::late_release:
      return "late release";
    case AuditEvent::generations_advanced:
      return "generations advanced";
    case AuditEvent::time_accepted:
      return "time accepted";
  }
  return "unknown";
}

std::string in_words(Duration duration) {
  using namespace std::chrono;
  struct Unit {
    std::int64_t seconds;
    const char* name;
  };
  static constexpr Unit units[] = {{86'400, "d"}, {3'600, "h"}, {60, "m"}, {1, "s"}};
  auto left = duration_cast<seconds>(duration).count();
  if (left < 1)
    return left < 0 ? "0s" : fmt::format("{}ms", duration_cast<milliseconds>(duration).count());
  std::string words;
  int shown = 0;
  for (const auto& unit : units) {
    if (left < unit.seconds || shown == 2) continue;
    if (shown++) words += ' ';
    words += std::to_string(left / unit.seconds) + unit.name;
    left %= unit.seconds;
  }
  return words;
}

std::string in_words(WallTime time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(
                         std::chrono::time_point_cast<std::chrono::system_clock::duration>(time))));
}

std::string as_table(const std::vector<StoredRecord>& records, const View& view) {
  if (records.empty()) return "no records\n";
  std::vector<std::vector<std::string>> rows{
      {"STATE", "AGE", "OPERATION", "CALLER", "KEY", "GEN", "TRIES", "STATUS", "ID", "REASON"}};
  for (const auto& stored : records) {
    const auto& record = stored.record;
    rows.push_back({condition_words(stored), in_words(stored.age), stored.scope.operation(),
                    shown_caller(stored.scope, view), shown_key(stored.scope, view),
                    std::to_string(number(record.generation)), std::to_string(record.attempts),
                    record.result ? std::to_string(record.result->status) : "-",
                    record.operation_id.text(), reason_of(record)});
  }
  return table_of(rows);
}

std::string as_json(const std::vector<StoredRecord>& records, const View& view) {
  json::array array;
  for (const auto& stored : records) array.push_back(object_of(stored, view));
  return json::serialize(array) + "\n";
}

std::string as_text(const StoredRecord& stored, const std::vector<AuditRow>& audit,
                    const View& view) {
  const auto& record = stored.record;
  std::string text;
  const auto line = [&text](std::string_view label, const std::string& value) {
    if (!value.empty()) fmt::format_to(std::back_inserter(text), "{:<12} {}\n", label, value);
  };
  line("operation", stored.scope.operation());
  line("id", record.operation_id.text());
  line("namespace", stored.scope.name_space());
  line("caller", shown_caller(stored.scope, view));
  line("key", shown_key(stored.scope, view));
  line("state", condition_words(stored) +
                    (record.state == State::uncertain ? " (" + reason_of(record) + ")" : ""));
  line("generation", fmt::format("{}, attempts {}", number(record.generation), record.attempts));
  line("created", in_words(record.created));
  line("claimed", fmt::format("{} ({} ago)", in_words(record.claimed), in_words(stored.age)));
  if (stored.lease_left) line("lease left", in_words(*stored.lease_left));
  if (record.settled) line("settled", in_words(*record.settled));
  if (record.expires) line("expires", in_words(*record.expires));
  if (record.result) {
    line("status", std::to_string(record.result->status) +
                       (record.result->effect == Effect::unknown ? ", effect unknown" : ""));
    line("body",
         fmt::format("{} bytes, {}", record.result->body.size(), name(record.result->body_kept)));
    line("resource", record.result->resource_id.value_or(""));
    if (view.reveal) text += "\n" + record.result->headers + "\n" + record.result->body + "\n";
  }
  if (!audit.empty()) text += "\n" + as_text(audit);
  return text;
}

std::string as_text(const std::vector<AuditRow>& audit) {
  std::string text;
  for (const auto& row : audit) {
    const auto& noted = row.audit;
    fmt::format_to(std::back_inserter(text), "{}  {}, generation {}", in_words(row.at),
                   name(noted.event), number(noted.generation));
    if (noted.before || noted.after) {
      fmt::format_to(std::back_inserter(text), ", {} -> {}",
                     noted.before ? name(*noted.before) : "nothing",
                     noted.after ? name(*noted.after) : "nothing");
    }
    if (noted.late_result) {
      fmt::format_to(std::back_inserter(text), ", its status {}", noted.late_result->status);
    }
    if (noted.contradicts) text += ", CONTRADICTS what was settled";
    if (!row.actor.who.empty()) text += ", by " + printable(row.actor.who);
    if (!row.actor.evidence.empty()) text += ": " + printable(row.actor.evidence);
    text += '\n';
  }
  return text;
}

std::string as_json(const StoredRecord& stored, const std::vector<AuditRow>& audit,
                    const View& view) {
  auto object = object_of(stored, view);
  object["claimed"] = in_words(stored.record.claimed);
  object["audit"] = array_of(audit);
  if (view.reveal && stored.record.result) {
    add_bytes(object, "headers", stored.record.result->headers);
    add_bytes(object, "body", stored.record.result->body);
  }
  return json::serialize(object) + "\n";
}

std::string as_json(const std::vector<AuditRow>& audit) {
  return json::serialize(json::object{{"audit", array_of(audit)}}) + "\n";
}

namespace {

/// Each kind of record that stats count, by the name people see.
template <class Visit>
void for_each_kind(const answer::Stats& stats, Visit visit) {
  visit("processing", stats.processing);
  visit("completed", stats.completed);
  visit("failed", stats.failed);
  visit("uncertain", stats.uncertain);
  visit("freed", stats.freed);
  visit("tombstone", stats.tombstone);
  visit("expired", stats.expired);
}

}  // namespace

std::string as_text(const answer::Stats& stats) {
  std::vector<std::vector<std::string>> rows{{"STATE", "RECORDS", "BYTES", "OLDEST"}};
  for_each_kind(stats, [&](const std::string& kind, const answer::Stats::PerCondition& counts) {
    std::string oldest;
    if (kind == "processing" && stats.oldest_processing)
      oldest = in_words(*stats.oldest_processing);
    if (kind == "uncertain" && stats.oldest_uncertain) oldest = in_words(*stats.oldest_uncertain);
    rows.push_back({kind, std::to_string(counts.records), std::to_string(counts.bytes), oldest});
  });
  auto text = table_of(rows);
  fmt::format_to(std::back_inserter(text), "\nsweep backlog    {}{}\nlast generation  {}\n",
                 stats.sweep_backlog,
                 stats.sweep_lag ? ", oldest due for " + in_words(*stats.sweep_lag) : "",
                 number(stats.last_generation));
  if (stats.expiry_paused)
    text +=
        "expiry is PAUSED: the wall clock jumped ahead; nothing expires until it agrees again\n";
  return text;
}

std::string as_json(const answer::Stats& stats) {
  json::object object;
  for_each_kind(stats, [&](const char* kind, const answer::Stats::PerCondition& counts) {
    object[kind] = json::object{{"records", counts.records}, {"bytes", counts.bytes}};
  });
  const auto age = [&](const char* key, const std::optional<Duration>& value) {
    object[key] =
        value ? json::value(std::chrono::duration_cast<std::chrono::seconds>(*value).count())
              : json::value(nullptr);
  };
  age("oldest_live_seconds", stats.oldest_live);
  age("oldest_processing_seconds", stats.oldest_processing);
  age("oldest_uncertain_seconds", stats.oldest_uncertain);
  age("sweep_lag_seconds", stats.sweep_lag);
  object["sweep_backlog"] = stats.sweep_backlog;
  object["last_generation"] = number(stats.last_generation);
  object["expiry_paused"] = stats.expiry_paused;
  return json::serialize(object) + "\n";
}

}  // namespace einmal::programs
