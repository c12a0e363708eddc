#include "einmal/client/journal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "einmal/client/journal_schema.hpp"
#include "einmal/sqlite_file/statement.hpp"
#include "einmal/sqlite_file/transaction.hpp"

namespace einmal::client {

using sqlite_file::Connection;
using sqlite_file::Statement;
using sqlite_file::Transaction;
using sqlite_file::TransactionControl;

namespace {

constexpr std::size_t wal_limit = 4 * 1024 * 1024;
constexpr const char* all_columns =
    "SELECT i.id, i.name, i.key, i.key_header, i.key_style, i.method, i.url, i.headers, i.body, "
    "i.created, i.digest, p.attempts, p.in_doubt, p.doubt_why, p.first_sent, p.changed, p.verdict, "
    "p.why, p.status, p.headers, p.body, p.body_cut, p.digest "
    "FROM intent i LEFT JOIN progress p ON p.intent = i.id ";

std::int64_t us(WallTime time) { return time.time_since_epoch().count(); }
WallTime wall(std::int64_t microseconds) { return WallTime(Duration(microseconds)); }
std::string text(const Statement& row, int column) { return std::string(row.bytes(column)); }

/// A progress as its columns, so that the digest is made of what is written and of what is read.
struct ProgressRow {
  std::int64_t attempts = 0, in_doubt = 0;
  std::string doubt_why;
  std::optional<std::int64_t> first_sent, changed;
  std::optional<std::string> verdict;
  std::string why;
  std::int64_t status = 0;
  Bytes headers, body;
  std::int64_t body_cut = 0;

  Bytes digest(const Bytes& of_intent) const {
    return Digest("einmal-progress-1")
        .add(of_intent)
        .add(attempts)
        .add(in_doubt)
        .add(doubt_why)
        .add(first_sent.value_or(-1))
        .add(changed.value_or(-1))
        .add(verdict.value_or("-"))
        .add(why)
        .add(status)
        .add(headers)
        .add(body)
        .add(body_cut)
        .bytes();
  }
};

ProgressRow row_of(const Progress& progress) {
  ProgressRow row;
  row.attempts = progress.attempts;
  row.in_doubt = progress.doubt.in_doubt ? 1 : 0;
  row.doubt_why = name(progress.doubt.why);
  if (progress.first_sent) row.first_sent = us(*progress.first_sent);
  if (progress.changed) row.changed = us(*progress.changed);
  if (!progress.verdict) return row;
  row.verdict = name(*progress.verdict);
  row.why = name(why(*progress.verdict));
  if (const Answer* answer = answer_of(*progress.verdict)) {
    row.status = answer->status;
    row.headers = http::serialize(answer->headers);
    row.body = answer->body;
    row.body_cut = answer->body_cut ? 1 : 0;
  }
  return row;
}

std::optional<Progress> progress_of(ProgressRow&& row) {
  Progress progress;
  progress.attempts = static_cast<int>(row.attempts);
  const auto doubt_why = parse_why(row.doubt_why);
  if (!doubt_why) return std::nullopt;
  progress.doubt = {row.in_doubt != 0, *doubt_why};
  if (row.first_sent) progress.first_sent = wall(*row.first_sent);
  if (row.changed) progress.changed = wall(*row.changed);
  if (!row.verdict) return progress;
  std::optional<Answer> answer;
  if (row.status != 0) {
    auto headers = http::parse_stored_headers(row.headers);
    if (!headers) return std::nullopt;
    answer = Answer{static_cast<int>(row.status), std::move(*headers), std::move(row.body),
                    row.body_cut != 0};
  }
  const auto verdict_why = parse_why(row.why);
  if (!verdict_why) return std::nullopt;
  progress.verdict = make_verdict(*row.verdict, *verdict_why, std::move(answer));
  if (!progress.verdict) return std::nullopt;
  return progress;
}

/// The entry in a row of `all_columns`; nothing if it is not what was written.
std::optional<Entry> read_entry(const Statement& row) {
  Entry entry;
  entry.id = row.integer(0);
  Intent& intent = entry.intent;
  intent.name = text(row, 1);
  intent.key = text(row, 2);
  intent.key_header = text(row, 3);
  intent.key_style = row.integer(4) == 0 ? KeyStyle::bare : KeyStyle::quoted;
  intent.method = text(row, 5);
  intent.url = text(row, 6);
  auto headers = http::parse_stored_headers(row.bytes(7));
  if (!headers) return std::nullopt;
  intent.headers = std::move(*headers);
  intent.body = text(row, 8);
  intent.created = wall(row.integer(9));
  const Bytes digest = text(row, 10);
  if (digest.size() != 32 || digest != digest_of(intent) || row.is_null(11)) return std::nullopt;

  ProgressRow progress;
  progress.attempts = row.integer(11);
  progress.in_doubt = row.integer(12);
  progress.doubt_why = text(row, 13);
  if (!row.is_null(14)) progress.first_sent = row.integer(14);
  if (!row.is_null(15)) progress.changed = row.integer(15);
  if (!row.is_null(16)) progress.verdict = text(row, 16);
  progress.why = text(row, 17);
  progress.status = row.integer(18);
  progress.headers = text(row, 19);
  progress.body = text(row, 20);
  progress.body_cut = row.integer(21);
  if (progress.digest(digest) != row.bytes(22)) return std::nullopt;
  auto read = progress_of(std::move(progress));
  if (!read) return std::nullopt;
  entry.progress = std::move(*read);
  return entry;
}

}  // namespace

bool Intent::is_same_request(const Intent& other) const {
  return method == other.method && url == other.url && headers == other.headers &&
         body == other.body && key_header == other.key_header && key_style == other.key_style;
}

class Journal::Impl {
 public:
  Impl(std::unique_ptr<Connection> opened, TransactionControl transactions)
      : connection(std::move(opened)), control(std::move(transactions)) {}

  Result<std::variant<Entry, OtherRequest>> begin(const Intent& intent);
  Result<std::optional<Entry>> find(const std::string& name);
  Result<void> save(const Entry& entry);
  Result<std::vector<Entry>> list(Which which, std::vector<DamagedEntry>& damaged);
  Result<bool> forget(std::int64_t id);
  Result<void> prune(WallTime settled_before);

  std::unique_ptr<Connection> connection;

 private:
  Result<std::int64_t> insert(const Intent& intent);
  Result<void> write_progress(std::int64_t id, const Bytes& intent_digest,
                              const Progress& progress);
  Result<void> remove(std::int64_t id);
  Result<void> commit(Transaction& transaction);

  TransactionControl control;
};

Result<std::optional<Entry>> Journal::Impl::find(const std::string& name) {
  auto query = connection->prepare(std::string(all_columns) + "WHERE i.name = ?1");
  if (!query) return pass_on(query);
  query->bind_text(1, name);
  auto row = query->step();
  if (!row) return pass_on(row);
  if (!*row) return std::optional<Entry>();
  auto entry = read_entry(*query);
  if (!entry)
    return failure(ErrorCode::corrupt,
                   fmt::format("{}: the record of this intent (number {}) is damaged; it may have "
                               "been sent, and its key is lost: find out at the server what "
                               "happened, then forget the record",
                               connection->path(), query->integer(0)));
  return entry;
}

Result<std::variant<Entry, Journal::OtherRequest>> Journal::Impl::begin(const Intent& intent) {
  using Begun = std::variant<Entry, OtherRequest>;
  Transaction transaction(control);
  if (auto begun = transaction.begin_write(); !begun) return pass_on(begun);
  auto found = find(intent.name);
  if (!found) return pass_on(found);
  if (*found) {
    Entry& entry = **found;
    if (entry.intent.is_same_request(intent)) return Begun(std::move(entry));
    const Progress& progress = entry.progress;
    const bool rejected = progress.is_settled() && why(*progress.verdict) == Why::rejected;
    if (progress.doubt.in_doubt || (progress.is_settled() && !rejected))
      return Begun(OtherRequest{});
    if (auto removed = remove(entry.id); !removed) return pass_on(removed);
  } else {
    std::vector<DamagedEntry> damaged;
    if (auto listed = list(Which::all, damaged); !listed) return pass_on(listed);
    if (!damaged.empty())
      return failure(ErrorCode::corrupt,
                     fmt::format("{}: {} of its records cannot be trusted, and this intent may be "
                                 "one of them; list what is pending, find out at the server what "
                                 "happened, then forget the damaged records",
                                 connection->path(), damaged.size()));
  }
  Entry entry;
  entry.intent = intent;
  auto id = insert(intent);
  if (!id) return pass_on(id);
  entry.id = *id;
  if (auto written = write_progress(*id, digest_of(intent), entry.progress); !written)
    return pass_on(written);
  if (auto committed = commit(transaction); !committed) return pass_on(committed);
  return Begun(std::move(entry));
}

Result<std::int64_t> Journal::Impl::insert(const Intent& intent) {
  auto statement = connection->prepare(
      "INSERT INTO intent(name, key, key_header, key_style, method, url, headers, body, created, "
      "digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
  if (!statement) return pass_on(statement);
  const Bytes headers = http::serialize(intent.headers);
  const Bytes digest = digest_of(intent);
  statement->bind_text(1, intent.name);
  statement->bind_text(2, intent.key);
  statement->bind_text(3, intent.key_header);
  statement->bind(4, static_cast<std::int64_t>(intent.key_style));
  statement->bind_text(5, intent.method);
  statement->bind_text(6, intent.url);
  statement->bind_blob(7, headers);
  statement->bind_blob(8, intent.body);
  statement->bind(9, us(intent.created));
  statement->bind_blob(10, digest);
  if (auto run = statement->run(); !run) return pass_on(run);
  return connection->last_insert_id();
}

Result<void> Journal::Impl::write_progress(std::int64_t id, const Bytes& intent_digest,
                                           const Progress& progress) {
  auto statement = connection->prepare(
      "INSERT OR REPLACE INTO progress(intent, attempts, in_doubt, doubt_why, first_sent, changed, "
      "verdict, why, status, headers, body, body_cut, settled, digest) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)");
  if (!statement) return pass_on(statement);
  const ProgressRow row = row_of(progress);
  const Bytes digest = row.digest(intent_digest);
  const std::string verdict = row.verdict.value_or("");
  const auto bind_optional = [&](int at, const std::optional<std::int64_t>& value) {
    value ? statement->bind(at, *value) : statement->bind_null(at);
  };
  statement->bind(1, id);
  statement->bind(2, row.attempts);
  statement->bind(3, row.in_doubt);
  statement->bind_text(4, row.doubt_why);
  bind_optional(5, row.first_sent);
  bind_optional(6, row.changed);
  row.verdict ? statement->bind_text(7, verdict) : statement->bind_null(7);
  statement->bind_text(8, row.why);
  statement->bind(9, row.status);
  statement->bind_blob(10, row.headers);
  statement->bind_blob(11, row.body);
  statement->bind(12, row.body_cut);
  statement->bind(13, progress.is_settled() ? 1 : 0);
  statement->bind_blob(14, digest);
  return statement->run();
}

Result<void> Journal::Impl::save(const Entry& entry) {
  Transaction transaction(control);
  if (auto begun = transaction.begin_write(); !begun) return begun;
  const Bytes digest = digest_of(entry.intent);
  auto statement = connection->prepare("SELECT 1 FROM intent WHERE id = ?1 AND digest = ?2");
  if (!statement) return pass_on(statement);
  statement->bind(1, entry.id);
  statement->bind_blob(2, digest);
  auto there = statement->step();
  if (!there) return pass_on(there);
  statement->reset();
  if (!*there)
    return failure(ErrorCode::corrupt,
                   fmt::format("{}: the record of this intent is gone; it was forgotten or the "
                               "file was replaced while it was in use",
                               connection->path()));
  if (auto written = write_progress(entry.id, digest, entry.progress); !written) return written;
  return commit(transaction);
}

Result<void> Journal::Impl::commit(Transaction& transaction) {
  if (auto committed = transaction.commit(); !committed) return committed;
  // What this moves is durable already, so that its failure is none of ours.
  if (connection->wal_bytes() > wal_limit)
    (void)connection->checkpoint(Connection::CheckpointMode::passive);
  return {};
}

Result<std::vector<Entry>> Journal::Impl::list(Which which, std::vector<DamagedEntry>& damaged) {
  std::string sql = all_columns;
  if (which == Which::open) sql += "WHERE p.settled IS NOT 1 ";
  auto query = connection->prepare(sql + "ORDER BY i.id");
  if (!query) return pass_on(query);
  std::vector<Entry> entries;
  while (true) {
    auto row = query->step();
    if (!row) return pass_on(row);
    if (!*row) return entries;
    if (auto entry = read_entry(*query)) {
      entries.push_back(std::move(*entry));
    } else {
      damaged.push_back({query->integer(0), text(*query, 1)});
    }
  }
}

Result<void> Journal::Impl::remove(std::int64_t id) {
  for (const char* sql :
       {"DELETE FROM progress WHERE intent = ?1", "DELETE FROM intent WHERE id = ?1"}) {
    auto statement = connection->prepare(sql);
    if (!statement) return pass_on(statement);
    statement->bind(1, id);
    if (auto run = statement->run(); !run) return run;
  }
  return {};
}

Result<bool> Journal::Impl::forget(std::int64_t id) {
  Transaction transaction(control);
  if (auto begun = transaction.begin_write(); !begun) return pass_on(begun);
  if (auto removed = remove(id); !removed) return pass_on(removed);
  const bool was_there = connection->rows_changed() > 0;
  if (auto committed = commit(transaction); !committed) return pass_on(committed);
  return was_there;
}

Result<void> Journal::Impl::prune(WallTime settled_before) {
  std::vector<DamagedEntry> damaged;
  auto entries = list(Which::all, damaged);
  if (!entries) return pass_on(entries);
  for (const Entry& entry : *entries) {
    const auto& progress = entry.progress;
    if (!progress.is_settled() || !progress.changed || *progress.changed >= settled_before)
      continue;
    if (auto forgotten = forget(entry.id); !forgotten) return pass_on(forgotten);
  }
  return {};
}

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Journal::~Journal() = default;

Result<std::unique_ptr<Journal>> Journal::open(const std::string& path, Random& random,
                                               WallTime now, JournalOptions options) {
  auto connection = open_journal_file(path, random, options);
  if (!connection) return pass_on(connection);
  auto control = TransactionControl::prepare(**connection);
  if (!control) return pass_on(control);
  auto impl = std::make_unique<Impl>(std::move(*connection), std::move(*control));
  if (auto pruned = impl->prune(now - options.keep_settled); !pruned) return pass_on(pruned);
  return std::unique_ptr<Journal>(new Journal(std::move(impl)));
}

Result<std::variant<Entry, Journal::OtherRequest>> Journal::begin(const Intent& intent) {
  return impl_->begin(intent);
}
Result<std::optional<Entry>> Journal::find(const std::string& name) { return impl_->find(name); }
Result<void> Journal::save(const Entry& entry) { return impl_->save(entry); }
Result<bool> Journal::forget(std::int64_t id) { return impl_->forget(id); }
const std::string& Journal::path() const { return impl_->connection->path(); }

Result<std::vector<Entry>> Journal::list(Which which) {
  std::vector<DamagedEntry> damaged;
  return impl_->list(which, damaged);
}

Result<std::vector<DamagedEntry>> Journal::damaged() {
  std::vector<DamagedEntry> damaged;
  auto listed = impl_->list(Which::all, damaged);
  if (!listed) return pass_on(listed);
  return damaged;
}

}  // namespace einmal::client
