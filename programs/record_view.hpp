#pragma once

#include <string>
#include <vector>

#include "einmal/store/log_digest.hpp"
#include "einmal/store/store.hpp"

/// Records as people and programs read them. Keys and callers appear as digests unless `reveal`.

namespace einmal::programs {

struct View {
  const LogDigest& digest;
  bool reveal = false;
};

std::string_view name(State state);
std::string_view name(Condition condition);
std::string_view name(UncertainCause cause);
std::string_view name(BodyKept kept);
std::string_view name(AuditEvent event);

/// "3m", "2h 5m", "12d": the two largest units.
std::string in_words(Duration duration);
/// ISO 8601 in UTC, to the second.
std::string in_words(WallTime time);

std::string as_table(const std::vector<StoredRecord>& records, const View& view);
std::string as_json(const std::vector<StoredRecord>& records, const View& view);
/// One record with its history; headers and body only with `reveal`.
std::string as_text(const StoredRecord& record, const std::vector<AuditRow>& audit,
                    const View& view);
std::string as_json(const StoredRecord& record, const std::vector<AuditRow>& audit,
                    const View& view);
/// The history alone, of a record that is gone.
std::string as_text(const std::vector<AuditRow>& audit);
std::string as_json(const std::vector<AuditRow>& audit);
std::string as_text(const answer::Stats& stats);
std::string as_json(const answer::Stats& stats);

}  // namespace einmal::programs
