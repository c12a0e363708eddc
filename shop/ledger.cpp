#include "shop/ledger.hpp"

#include <sqlite3.h>

#include <array>
#include <mutex>
#include <utility>

namespace einmal::shop {

namespace {

constexpr const char* schema = R"(
  CREATE TABLE IF NOT EXISTS entries(
    kind TEXT NOT NULL, id TEXT NOT NULL, item TEXT NOT NULL, amount INTEGER NOT NULL,
    currency TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY(kind, id)) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS entries_by_key ON entries(key, kind) WHERE key <> '';
  CREATE TABLE IF NOT EXISTS effects(
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, key TEXT NOT NULL,
    at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
  CREATE TABLE IF NOT EXISTS fences(
    name TEXT NOT NULL PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID;
)";

/// A prepared statement in use: bound, stepped, and reset when it goes.
class Use {
 public:
  Use(sqlite3_stmt* statement, std::initializer_list<std::string_view> texts)
      : statement_(statement) {
    int index = 0;
    for (const auto text : texts)
      sqlite3_bind_text(statement_, ++index, text.data(), static_cast<int>(text.size()),
                        SQLITE_TRANSIENT);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  void bind(int index, std::int64_t number) { sqlite3_bind_int64(statement_, index, number); }
  int step() { return sqlite3_step(statement_); }
  std::string text(int column) const {
    const auto* bytes = sqlite3_column_text(statement_, column);
    const auto size = sqlite3_column_bytes(statement_, column);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size))
                 : std::string();
  }
  std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  Entry entry() const { return {text(0), text(1), text(2), number(3), text(4), text(5)}; }

 private:
  sqlite3_stmt* statement_;
};

}  // namespace

class Ledger::Impl {
 public:
  enum Statement : std::size_t {
    begin,
    commit,
    rollback,
    insert,
    upsert,
    effect,
    by_id,
    by_key,
    erase,
    count,
    counts,
    fence_of,
    set_fence,
    last
  };

  explicit Impl(std::string path) : path_(std::move(path)) {}
  ~Impl() {
    for (auto* statement : statements_) sqlite3_finalize(statement);
    sqlite3_close(database_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> open();
  Use use(Statement which, std::initializer_list<std::string_view> texts = {}) {
    return {statements_[which], texts};
  }
  tl::unexpected<Error> error() const {
    return failure(ErrorCode::unavailable,
                   "ledger " + path_ + ": " + sqlite3_errmsg(database_) + "; nothing was booked");
  }
  bool run(Statement which, std::initializer_list<std::string_view> texts = {}) {
    auto statement = use(which, texts);
    return statement.step() == SQLITE_DONE;
  }
  bool write(Statement which, const Entry& entry);
  enum class Passed : std::uint8_t { yes, stale, failed };
  /// Compares the fence's token with what was seen, and remembers it. In a transaction.
  Passed pass(const std::optional<Fence>& fence);
  bool note_effect(const Entry& entry) { return run(effect, {entry.kind, entry.id, entry.key}); }

  /// Runs `body` (true: keep what it did) as one transaction.
  template <class Body>
  Result<void> transaction(Body body);

  std::mutex mutex;

 private:
  std::string path_;
  sqlite3* database_ = nullptr;
  std::array<sqlite3_stmt*, last> statements_{};
};

Result<void> Ledger::Impl::open() {
  if (sqlite3_open_v2(path_.c_str(), &database_,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK)
    return error();
  sqlite3_busy_timeout(database_, 5000);
  // NORMAL: an effect outlives the process, not a power cut. The shop stands for somebody else's
  // API; what is being shown is the gateway's durability.
  for (const char* sql : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", schema}) {
    if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error();
  }
  constexpr std::array<const char*, last> texts{
      "BEGIN IMMEDIATE",
      "COMMIT",
      "ROLLBACK",
      "INSERT INTO entries(kind, id, item, currency, key, amount) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
      "INSERT INTO entries(kind, id, item, currency, key, amount) VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
      " ON CONFLICT DO UPDATE SET item = ?3, currency = ?4, key = ?5, amount = ?6",
      "INSERT INTO effects(kind, id, key) VALUES(?1, ?2, ?3)",
      "SELECT id, kind, item, amount, currency, key FROM entries WHERE kind = ?1 AND id = ?2",
      "SELECT id, kind, item, amount, currency, key FROM entries"
      " WHERE key = ?2 AND key <> '' AND kind = ?1",
      "DELETE FROM entries WHERE kind = ?1 AND id = ?2",
      "SELECT count(*) FROM effects WHERE ?1 = ''"
      " OR (kind, id) IN (SELECT kind, id FROM entries WHERE item = ?1)",
      "SELECT key, count(*) FROM effects WHERE key <> '' AND (?1 = ''"
      " OR (kind, id) IN (SELECT kind, id FROM entries WHERE item = ?1)) GROUP BY key",
      "SELECT token FROM fences WHERE name = ?1",
      "INSERT INTO fences(name, token) VALUES(?1, ?2) ON CONFLICT DO UPDATE SET token = ?2",
  };
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (sqlite3_prepare_v3(database_, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &statements_[i],
                           nullptr) != SQLITE_OK)
      return error();
  }
  return {};
}

bool Ledger::Impl::write(Statement which, const Entry& entry) {
  auto statement = use(which, {entry.kind, entry.id, entry.item, entry.currency, entry.key});
  statement.bind(6, entry.amount);
  return statement.step() == SQLITE_DONE;
}

Ledger::Impl::Passed Ledger::Impl::pass(const std::optional<Fence>& fence) {
  if (!fence) return Passed::yes;
  {
    auto seen = use(fence_of, {fence->of});
    const int code = seen.step();
    if (code == SQLITE_ROW && seen.number(0) > fence->token) return Passed::stale;
    if (code != SQLITE_ROW && code != SQLITE_DONE) return Passed::failed;
  }
  auto remember = use(set_fence, {fence->of});
  remember.bind(2, fence->token);
  return remember.step() == SQLITE_DONE ? Passed::yes : Passed::failed;
}

template <class Body>
Result<void> Ledger::Impl::transaction(Body body) {
  const std::lock_guard lock(mutex);
  if (!run(begin)) return error();
  if (body() && run(commit)) return {};
  auto failed = error();
  if (!sqlite3_get_autocommit(database_)) run(rollback);
  return failed;
}

Ledger::Ledger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Ledger::~Ledger() = default;

Result<std::unique_ptr<Ledger>> Ledger::open(const std::string& path) {
  auto impl = std::make_unique<Impl>(path);
  if (auto opened = impl->open(); !opened) return pass_on(opened);
  return std::unique_ptr<Ledger>(new Ledger(std::move(impl)));
}

Result<Ledger::AddOutcome> Ledger::add(const Entry& entry, const std::optional<Fence>& fence) {
  AddOutcome outcome = Added{};
  auto done = impl_->transaction([&] {
    const auto passed = impl_->pass(fence);
    if (passed == Impl::Passed::stale) outcome = Stale{};
    if (passed != Impl::Passed::yes) return passed == Impl::Passed::stale;
    return impl_->write(Impl::insert, entry) && impl_->note_effect(entry);
  });
  if (!done) return pass_on(done);
  return outcome;
}

Result<Ledger::AddOutcome> Ledger::add_once(const Entry& entry, const std::optional<Fence>& fence) {
  AddOutcome outcome = Added{};
  auto done = impl_->transaction([&] {
    const auto passed = impl_->pass(fence);
    if (passed == Impl::Passed::stale) outcome = Stale{};
    if (passed != Impl::Passed::yes) return passed == Impl::Passed::stale;
    {
      auto there = impl_->use(Impl::by_key, {entry.kind, entry.key});
      if (there.step() == SQLITE_ROW) {
        outcome = there.entry();
        return true;
      }
    }
    return impl_->write(Impl::insert, entry) && impl_->note_effect(entry);
  });
  if (!done) return pass_on(done);
  return outcome;
}

Result<Ledger::Put> Ledger::put(const Entry& entry, const std::optional<Fence>& fence) {
  auto outcome = Put::created;
  auto done = impl_->transaction([&] {
    const auto passed = impl_->pass(fence);
    if (passed == Impl::Passed::stale) outcome = Put::stale;
    if (passed != Impl::Passed::yes) return passed == Impl::Passed::stale;
    {
      auto there = impl_->use(Impl::by_id, {entry.kind, entry.id});
      if (there.step() == SQLITE_ROW) {
        auto before = there.entry();
        before.key = entry.key;
        outcome = before == entry ? Put::unchanged : Put::replaced;
      }
    }
    if (outcome == Put::unchanged) return true;
    return impl_->write(Impl::upsert, entry) && impl_->note_effect(entry);
  });
  if (!done) return pass_on(done);
  return outcome;
}

Result<std::optional<Entry>> Ledger::find(const std::string& kind, const std::string& id) {
  const std::lock_guard lock(impl_->mutex);
  auto statement = impl_->use(Impl::by_id, {kind, id});
  const int code = statement.step();
  if (code == SQLITE_ROW) return std::optional<Entry>(statement.entry());
  if (code != SQLITE_DONE) return impl_->error();
  return std::optional<Entry>();
}

Result<std::vector<Entry>> Ledger::with_key(const std::string& kind, const std::string& key) {
  const std::lock_guard lock(impl_->mutex);
  std::vector<Entry> found;
  auto statement = impl_->use(Impl::by_key, {kind, key});
  int code = 0;
  while ((code = statement.step()) == SQLITE_ROW) found.push_back(statement.entry());
  if (code != SQLITE_DONE) return impl_->error();
  return found;
}

Result<bool> Ledger::remove(const std::string& kind, const std::string& id) {
  bool was_there = false;
  auto done = impl_->transaction([&] {
    {
      auto there = impl_->use(Impl::by_id, {kind, id});
      was_there = there.step() == SQLITE_ROW;
    }
    return impl_->run(Impl::erase, {kind, id});
  });
  if (!done) return pass_on(done);
  return was_there;
}

Result<Effects> Ledger::effects(const std::string& item) {
  const std::lock_guard lock(impl_->mutex);
  Effects effects;
  auto total = impl_->use(Impl::count, {item});
  if (total.step() != SQLITE_ROW) return impl_->error();
  effects.count = static_cast<std::uint64_t>(total.number(0));
  auto each = impl_->use(Impl::counts, {item});
  int code = 0;
  while ((code = each.step()) == SQLITE_ROW)
    effects.by_key[each.text(0)] = static_cast<std::uint64_t>(each.number(1));
  if (code != SQLITE_DONE) return impl_->error();
  return effects;
}

}  // namespace einmal::shop
