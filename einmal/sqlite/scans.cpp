#include "einmal/sqlite/scans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "einmal/sqlite/columns.hpp"
#include "einmal/store/check_request.hpp"

namespace einmal::sqlite {

using sqlite_file::ResetAtEnd;
using sqlite_file::Statement;

namespace {

/// Rows looked at in one slice: a millisecond or two.
constexpr std::int64_t rows_in_a_slice = 2000;

using Slice = Result<std::optional<Answer>>;

/// Steps through `statement`, calls `row` for each row, and returns how many there were.
template <class F>
Result<std::int64_t> for_each(Statement& statement, F row) {
  std::int64_t rows = 0;
  while (true) {
    auto stepped = statement.step();
    if (!stepped) return pass_on(stepped);
    if (!*stepped) return rows;
    ++rows;
    if (Result<void> done = row(statement); !done) return pass_on(done);
  }
}

// --- list

class ListScan final : public Scan {
 public:
  explicit ListScan(const request::List& list) : list_(list), limit_(bounded(list.limit)) {
    std::from_chars(list.after.data(), list.after.data() + list.after.size(), after_);
  }

  Slice slice(StoreFile& file, const ScopeDigests& digests, const Now& now) override {
    auto statement = prepare(file, digests);
    if (!statement) return pass_on(statement);
    bool full = false;
    auto rows = for_each(*statement, [&](const Statement& row) -> Result<void> {
      if (full) return {};
      auto seen = look(file, row, now);
      if (!seen) return pass_on(seen);
      full = *seen;
      return {};
    });
    if (!rows) return pass_on(rows);
    if (!full && *rows == rows_in_a_slice) return std::optional<Answer>();
    return std::optional<Answer>(std::move(page_));
  }

 private:
  Result<Statement> prepare(StoreFile& file, const ScopeDigests& digests) {
    const bool uncertain = list_.conditions == std::vector{Condition::uncertain};
    const bool of_caller = list_.name_space && list_.caller && !uncertain;
    auto sql = fmt::format("SELECT {} FROM record WHERE id > {}", RecordTable::columns(), after_);
    if (uncertain) sql += " AND id IN (SELECT record FROM agenda_uncertain)";
    if (of_caller) {
      const auto range = digests.of_caller(*list_.name_space, *list_.caller);
      sql += fmt::format(" AND scope_digest BETWEEN {} AND {}", range.first, range.last);
    }
    sql += fmt::format(" ORDER BY id LIMIT {}", rows_in_a_slice);
    return file.connection->prepare(sql);
  }

  /// Whether the page is full and there is more.
  Result<bool> look(StoreFile& file, const Statement& row, const Now& now) {
    auto decoded = file.records->decode(row);
    if (!decoded) return pass_on(decoded);
    auto scope = file.records->decode_scope(row);
    if (!scope) return pass_on(scope);
    if (decoded->result_id != 0) {
      auto result = file.records->result(decoded->result_id, Load::without_body);
      if (!result) return pass_on(result);
      decoded->record->result = std::move(*result);
    }
    StoredRecord stored = as_seen(std::move(*scope), std::move(*decoded->record), now);
    if (wanted(stored)) {
      if (page_.records.size() == limit_) {
        page_.next = std::to_string(last_listed_);
        return true;
      }
      page_.records.push_back(std::move(stored));
      last_listed_ = decoded->id;
    }
    after_ = decoded->id;
    return false;
  }

  bool wanted(const StoredRecord& stored) const {
    const Scope& scope = stored.scope;
    if (list_.name_space && scope.name_space() != *list_.name_space) return false;
    if (list_.caller && scope.caller() != *list_.caller) return false;
    if (list_.operation && scope.operation() != *list_.operation) return false;
    if (list_.min_age && stored.age < *list_.min_age) return false;
    return list_.conditions.empty() || std::find(list_.conditions.begin(), list_.conditions.end(),
                                                 stored.condition) != list_.conditions.end();
  }

  const request::List list_;
  const std::size_t limit_;
  std::int64_t after_ = 0;
  std::int64_t last_listed_ = 0;
  answer::Page page_;
};

// --- an operation that has no index entry

class SearchOperation final : public Scan {
 public:
  explicit SearchOperation(const request::ReadOperation& read) : read_(read) {}

  Slice slice(StoreFile& file, const ScopeDigests&, const Now& now) override {
    auto statement = file.connection->prepare(
        std::string("SELECT") + RecordTable::columns() +
        "FROM record WHERE id > ?1 AND id <= ?1 + ?2 AND operation_id = ?3");
    if (!statement) return pass_on(statement);
    statement->bind(1, after_);
    statement->bind(2, rows_in_a_slice);
    statement->bind_blob(3, read_.id.bytes());
    auto found = file.records->located(*statement, read_.with_body);
    if (!found) return pass_on(found);
    answer::Found answer;
    if (*found) {
      auto& [row, scope] = **found;
      answer.record = as_seen(std::move(scope), std::move(*row.record), now);
      return std::optional<Answer>(std::move(answer));
    }
    auto last = file.connection->query_integer("SELECT coalesce(max(id), 0) FROM record");
    if (!last) return pass_on(last);
    after_ += rows_in_a_slice;
    if (after_ < *last) return std::optional<Answer>();
    return std::optional<Answer>(std::move(answer));
  }

 private:
  const request::ReadOperation read_;
  std::int64_t after_ = 0;
};

// --- counts over the whole table

/// The few columns that say how a record counts.
struct Counted {
  Record record;
  std::int64_t bytes = 0;
  std::optional<WallTime> sweep_at;
};

#define EINMAL_COUNTED_COLUMNS \
  "id, state, after_expiry, tombstone, expires, claimed, sweep_at, result, result_bytes"

Counted counted_from(const Statement& row) {
  Counted counted;
  counted.record.state = static_cast<State>(row.integer(1));
  counted.record.policies.after_expiry = static_cast<AfterExpiry>(row.integer(2));
  counted.record.policies.tombstone = Duration(row.integer(3));
  counted.record.expires = optional_wall_time(row, 4);
  counted.record.claimed = wall_time(row.integer(5));
  counted.sweep_at = optional_wall_time(row, 6);
  if (!row.is_null(7)) counted.record.result.emplace();
  counted.bytes = row.integer(8);
  return counted;
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

class StatsScan final : public Scan {
 public:
  Slice slice(StoreFile& file, const ScopeDigests&, const Now& now) override {
    auto statement = file.connection->prepare("SELECT " EINMAL_COUNTED_COLUMNS
                                              " FROM record WHERE id > ?1 ORDER BY id LIMIT ?2");
    if (!statement) return pass_on(statement);
    statement->bind(1, after_);
    statement->bind(2, rows_in_a_slice);
    auto rows = for_each(*statement, [&](const Statement& row) -> Result<void> {
      after_ = row.integer(0);
      count(counted_from(row), now);
      return {};
    });
    if (!rows) return pass_on(rows);
    if (*rows == rows_in_a_slice) return std::optional<Answer>();
    auto generation = file.meta.generation();
    if (!generation) return pass_on(generation);
    stats_.last_generation = Generation{static_cast<std::uint64_t>(*generation)};
    stats_.expiry_paused = now.expiry_paused;
    return std::optional<Answer>(std::move(stats_));
  }

 private:
  void count(const Counted& counted, const Now& now) {
    const Record& record = counted.record;
    auto& condition = slot(stats_, record, now);
    ++condition.records;
    condition.bytes += static_cast<std::uint64_t>(counted.bytes);
    const Duration age = std::max(Duration::zero(), now.wall - record.claimed);
    if (is_live(record, now)) raise(stats_.oldest_live, age);
    if (record.state == State::processing) raise(stats_.oldest_processing, age);
    if (record.state == State::uncertain) raise(stats_.oldest_uncertain, age);
    if (counted.sweep_at && !now.expiry_paused && now.wall >= *counted.sweep_at) {
      ++stats_.sweep_backlog;
      raise(stats_.sweep_lag, now.wall - *counted.sweep_at);
    }
  }

  std::int64_t after_ = 0;
  answer::Stats stats_;
};

class LiveOperationsScan final : public Scan {
 public:
  explicit LiveOperationsScan(const request::LiveOperations& live) : live_(live) {}

  Slice slice(StoreFile& file, const ScopeDigests&, const Now& now) override {
    auto statement = file.connection->prepare(
        "SELECT " EINMAL_COUNTED_COLUMNS
        ", namespace, operation FROM record WHERE id > ?1 ORDER BY id LIMIT ?2");
    if (!statement) return pass_on(statement);
    statement->bind(1, after_);
    statement->bind(2, rows_in_a_slice);
    auto rows = for_each(*statement, [&](const Statement& row) -> Result<void> {
      after_ = row.integer(0);
      if (row.bytes(9) != live_.name_space || names_.contains(row.bytes(10))) return {};
      if (is_live(counted_from(row).record, now)) names_.emplace(row.bytes(10));
      return {};
    });
    if (!rows) return pass_on(rows);
    if (*rows == rows_in_a_slice) return std::optional<Answer>();
    return std::optional<Answer>(answer::Names{{names_.begin(), names_.end()}});
  }

 private:
  const request::LiveOperations live_;
  std::int64_t after_ = 0;
  std::set<std::string, std::less<>> names_;
};

class CountCallerScan final : public Scan {
 public:
  explicit CountCallerScan(const request::CountCaller& count) : count_(count) {}

  Slice slice(StoreFile& file, const ScopeDigests& digests, const Now& now) override {
    const auto range = digests.of_caller(count_.name_space, count_.caller);
    auto statement = file.connection->prepare(
        "SELECT " EINMAL_COUNTED_COLUMNS
        ", namespace, caller, scope_digest, scope_nth FROM record WHERE (scope_digest, scope_nth) "
        "> "
        "(?1, ?2) AND scope_digest <= ?3 ORDER BY scope_digest, scope_nth LIMIT ?4");
    if (!statement) return pass_on(statement);
    statement->bind(1, started_ ? after_digest_ : range.first);
    statement->bind(2, started_ ? after_nth_ : -1);
    statement->bind(3, range.last);
    statement->bind(4, rows_in_a_slice);
    started_ = true;
    auto rows = for_each(*statement, [&](const Statement& row) -> Result<void> {
      after_digest_ = row.integer(11);
      after_nth_ = row.integer(12);
      if (row.bytes(9) != count_.name_space || row.bytes(10) != count_.caller) return {};
      const Record record = counted_from(row).record;
      if (is_live(record, now)) ++counted_.live;
      if (record.state == State::uncertain) ++counted_.uncertain;
      return {};
    });
    if (!rows) return pass_on(rows);
    if (*rows == rows_in_a_slice) return std::optional<Answer>();
    return std::optional<Answer>(counted_);
  }

 private:
  const request::CountCaller count_;
  bool started_ = false;
  std::int64_t after_digest_ = 0, after_nth_ = 0;
  answer::CallerCount counted_;
};

}  // namespace

StoredRecord as_seen(Scope scope, Record record, const Now& now) {
  const auto seen = condition(record, now);
  const auto left =
      record.state == State::processing ? lease_left(record, now) : std::optional<Duration>();
  const auto age = std::max(Duration::zero(), now.wall - record.claimed);
  return StoredRecord{std::move(scope), std::move(record), seen, left, age};
}

std::unique_ptr<Scan> scan_for(const Request& request) {
  if (const auto* list = std::get_if<request::List>(&request)) {
    return std::make_unique<ListScan>(*list);
  }
  if (std::holds_alternative<request::Stats>(request)) return std::make_unique<StatsScan>();
  if (const auto* live = std::get_if<request::LiveOperations>(&request)) {
    return std::make_unique<LiveOperationsScan>(*live);
  }
  if (const auto* count = std::get_if<request::CountCaller>(&request)) {
    return std::make_unique<CountCallerScan>(*count);
  }
  const auto* read = std::get_if<request::ReadOperation>(&request);
  if (read && read->search) return std::make_unique<SearchOperation>(*read);
  return nullptr;
}

}  // namespace einmal::sqlite
