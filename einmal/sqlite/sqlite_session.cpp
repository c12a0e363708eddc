#include "einmal/sqlite/sqlite_session.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "einmal/sqlite/open_scopes.hpp"
#include "einmal/sqlite/session_tables.hpp"

namespace einmal {

namespace {

using namespace std::chrono_literals;
using sqlite::BorrowedStatement;
using sqlite::session_error;
using sqlite::SessionRow;
using sqlite::SessionState;
using sqlite::SessionTables;
using Pace = std::chrono::steady_clock;

bool is_busy(int result_code) {
  return (result_code & 0xff) == SQLITE_BUSY || (result_code & 0xff) == SQLITE_LOCKED;
}

class Implementation final : public SqliteSession {
 public:
  Implementation(sqlite3* handle, SqliteOpenScopes& scopes, const Clock& clock, Random& random,
                 SqliteSessionOptions options)
      : handle_(handle),
        scopes_(scopes.impl()),
        clock_(clock),
        random_(random),
        options_(options),
        tables_(handle),
        begin_(handle, "BEGIN IMMEDIATE"),
        savepoint_(handle, "SAVEPOINT einmal_handler"),
        undo_(handle, "ROLLBACK TO einmal_handler"),
        release_(handle, "RELEASE einmal_handler"),
        commit_(handle, "COMMIT"),
        roll_back_(handle, "ROLLBACK"),
        journal_mode_(handle, "PRAGMA main.journal_mode"),
        synchronous_(handle, "PRAGMA main.synchronous") {}
  ~Implementation() override { roll_back(); }

  Result<void> open();

  Result<Claimed> begin(const TransactionClaim& claim) override;
  Committed commit(event::Final outcome, const StoredResult& result, bool keep_effect) override;
  void roll_back() noexcept override;
  bool had_conflict() const override { return false; }  // a single writer meets nobody
  void pause(int) override {}
  Result<bool> became_durable() override;
  Result<std::size_t> sweep(std::size_t limit) override;

 private:
  Result<void> check_handle();
  Result<void> begin_write(Duration wait);
  Result<Claimed> claim_in_transaction();
  Result<Now> look(SessionState& state);
  Committed settle_and_commit(event::Final outcome, const StoredResult& result, bool keep_effect);
  Committed undone(Error error);
  Committed refused_commit(int result_code);
  Result<bool> sweep_one(const Now& now);
  void put_hook(bool refuse);
  static int refuse_commit(void* self);
  bool in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }

  sqlite3* handle_;
  SqliteOpenScopes::Impl& scopes_;
  const Clock& clock_;
  Random& random_;
  const SqliteSessionOptions options_;
  SessionTables tables_;
  BorrowedStatement begin_, savepoint_, undo_, release_, commit_, roll_back_, journal_mode_,
      synchronous_;

  // Of the transaction that is open.
  std::optional<TransactionClaim> claim_;
  SessionState state_;
  SessionRow row_;
  std::optional<Record> claimed_;
  bool entered_ = false, has_turn_ = false;
  bool refusing_ = false;  ///< Our commit hook is on the handle.
  bool handler_committed_ = false;
};

Result<void> Implementation::open() {
  if (auto usable = check_handle(); !usable) return usable;
  void* before = sqlite3_commit_hook(handle_, options_.commit_hook, options_.commit_hook_argument);
  if (before && before != options_.commit_hook_argument)
    return failure(ErrorCode::invalid,
                   "sqlite session: the handle had a commit hook; name it in the options");
  // Most sessions find the tables made, and must not wait for whoever writes now.
  const auto there = tables_.are_there();
  if (!there) return pass_on(there);
  if (*there) return {};
  if (auto begun = begin_write(options_.busy_limit); !begun) return begun;
  auto made = tables_.ensure(random_);
  if (made && commit_.run() != SQLITE_OK)
    made = tl::unexpected(session_error(handle_, sqlite3_errcode(handle_), "making its tables"));
  roll_back();
  return made;
}

/// What the promise needs of the handle; asked each time, since the application may change it.
Result<void> Implementation::check_handle() {
  if (in_transaction())
    return failure(ErrorCode::invalid, "sqlite session: the handle has a transaction open");
  if (sqlite3_db_readonly(handle_, "main") == 1)
    return failure(ErrorCode::invalid, "sqlite session: the handle is read-only");
  if (const char* attached = sqlite3_db_name(handle_, 2))  // 0 is main, 1 temp
    return failure(ErrorCode::invalid,
                   "sqlite session: database '" + std::string(attached) +
                       "' is attached; a commit over several files is not atomic in WAL mode");
  if (options_.relaxed_durability) return {};
  auto mode = journal_mode_.step();
  const bool is_wal = mode && *mode && journal_mode_.bytes(0) == "wal";
  journal_mode_.reset();
  auto level = synchronous_.step();
  const bool is_full = level && *level && synchronous_.integer(0) >= 2;
  synchronous_.reset();
  if (is_wal && is_full) return {};
  return failure(ErrorCode::invalid,
                 "sqlite session: the handle must have PRAGMA journal_mode = WAL and PRAGMA "
                 "synchronous = FULL, or the session relaxed_durability");
}

/// The turn among this process's sessions first, then the file's lock.
Result<void> Implementation::begin_write(Duration wait) {
  const auto end = Pace::now() + wait;
  const auto held = [&](const char* by) {
    return failure(ErrorCode::unavailable, std::string("sqlite session: ") + by +
                                               " held the file's write lock for too long; nothing "
                                               "was executed, try again");
  };
  if (!scopes_.take_turn(wait)) return held("a transaction of this process");
  has_turn_ = true;
  while (true) {
    const int code = begin_.run();
    if (code == SQLITE_OK) return {};
    if (!is_busy(code)) return tl::unexpected(session_error(handle_, code, "beginning"));
    if (Pace::now() >= end) return held("another connection");
    // Short and by chance: SQLite's own backing off loses against a writer that commits back to
    // back.
    std::this_thread::sleep_for(std::chrono::microseconds(200 + random_.below(1800)));
  }
}

Result<Claimed> Implementation::begin(const TransactionClaim& claim) {
  if (auto usable = check_handle(); !usable) return pass_on(usable);
  if (!scopes_.enter(claim.scope, claim.wait)) return claimed::InProgress{1s};
  entered_ = true;
  claim_ = claim;
  if (auto begun = begin_write(std::max(claim.wait, options_.busy_limit)); !begun) {
    roll_back();
    return pass_on(begun);
  }
  auto claimed = claim_in_transaction();
  if (!claimed) roll_back();
  return claimed;
}

/// The store's clock, with its guard against a wall clock that jumped ahead.
Result<Now> Implementation::look(SessionState& state) {
  auto kept = tables_.state();
  if (!kept) return pass_on(kept);
  state = *kept;
  Now now{clock_.wall_now(), clock_.boot_now(), clock_.boot_id(), false};
  ClockGuard guard(state.clock);
  now.expiry_paused = guard.look({now.wall, now.boot, now.boot_id});
  state.clock = guard.state();
  return now;
}

Result<Claimed> Implementation::claim_in_transaction() {
  auto now = look(state_);
  if (!now) return pass_on(now);
  auto row = tables_.find(claim_->scope);
  if (!row) return pass_on(row);
  row_ = std::move(*row);
  event::Claim claim;
  claim.fingerprint = claim_->fingerprint;
  claim.policies = claim_->policies;
  claim.owner = OwnerToken::draw(random_);
  claim.operation_id = OperationId::draw(random_);
  claim.generation = Generation{static_cast<std::uint64_t>(state_.generation) + 1};
  Step step = decide(row_.record, claim, *now);

  if (auto* replay = std::get_if<decision::Replay>(&step.decision)) {
    claimed::Replay answer;
    answer.state = replay->record.state;
    answer.operation_id = replay->record.operation_id;
    answer.result = std::move(*replay->record.result);
    return answer;
  }
  if (std::holds_alternative<decision::Mismatch>(step.decision)) return claimed::Mismatch{};
  if (std::holds_alternative<decision::Gone>(step.decision)) return claimed::Gone{};
  if (const auto* other = std::get_if<decision::OtherProfile>(&step.decision))
    return claimed::OtherProfile{other->profile};
  auto* execute = std::get_if<decision::Execute>(&step.decision);
  if (!execute)
    return failure(ErrorCode::corrupt, "sqlite session: einmal_record holds an open record");
  claimed_ = std::move(execute->record);
  ++state_.generation;
  if (const int code = savepoint_.run(); code != SQLITE_OK)
    return tl::unexpected(session_error(handle_, code, "setting a savepoint"));
  handler_committed_ = false;
  put_hook(true);
  return claimed::Execute{claimed_->generation, claimed_->operation_id};
}

void Implementation::put_hook(bool refuse) {
  if (refuse) {
    sqlite3_commit_hook(handle_, refuse_commit, this);
  } else if (refusing_) {
    sqlite3_commit_hook(handle_, options_.commit_hook, options_.commit_hook_argument);
  }
  refusing_ = refuse;
}

/// Whether the commit under way was asked for, by COMMIT or END, and does not end a statement that
/// runs in auto-commit because SQLite has rolled the transaction back before.
bool is_asked_for(sqlite3* handle) {
  for (sqlite3_stmt* each = sqlite3_next_stmt(handle, nullptr); each;
       each = sqlite3_next_stmt(handle, each)) {
    const char* sql = sqlite3_stmt_busy(each) ? sqlite3_sql(each) : nullptr;
    if (!sql) continue;
    sql += std::strspn(sql, " \t\r\n;");
    if (sqlite3_strnicmp(sql, "commit", 6) == 0 || sqlite3_strnicmp(sql, "end", 3) == 0)
      return true;
  }
  return false;
}

int Implementation::refuse_commit(void* self) {
  auto* session = static_cast<Implementation*>(self);
  session->handler_committed_ = session->handler_committed_ || is_asked_for(session->handle_);
  return 1;
}

// --- the end

Committed Implementation::commit(event::Final outcome, const StoredResult& result,
                                 bool keep_effect) {
  put_hook(false);
  Committed end = settle_and_commit(outcome, result, keep_effect);
  roll_back();  // what is still open, and the turn
  return end;
}

Committed Implementation::undone(Error error) { return committed::RolledBack{std::move(error)}; }

Committed Implementation::settle_and_commit(event::Final outcome, const StoredResult& result,
                                            bool keep_effect) {
  if (handler_committed_)
    return undone({ErrorCode::invalid,
                   "transaction: the handler tried to commit, which undid everything; it must not "
                   "begin, commit or roll back"});
  if (!in_transaction())
    return undone({ErrorCode::unavailable,
                   "transaction: it was rolled back while the handler ran, by SQLite (disk full, "
                   "I/O error, interrupt) or by the handler; nothing was executed"});
  if (!keep_effect && undo_.run() != SQLITE_OK)
    return undone({ErrorCode::invalid, "transaction: the handler ended the transaction itself"});
  // Fails when the handler has ended the transaction and begun another.
  if (release_.run() != SQLITE_OK)
    return undone({ErrorCode::invalid, "transaction: the handler ended the transaction itself"});

  const Now now{clock_.wall_now(), clock_.boot_now(), clock_.boot_id(), false};
  Step step = decide(
      claimed_, event::Settle{outcome, claimed_->generation, claimed_->owner, result, true}, now);
  if (!std::holds_alternative<decision::Ok>(step.decision) || !step.record)
    return undone({ErrorCode::internal, "transaction: the rules refused its own settlement"});
  if (auto put = tables_.put(row_, claim_->scope, *step.record); !put) return undone(put.error());
  if (auto kept = tables_.set_state(state_); !kept) return undone(kept.error());
  const int code = commit_.run();
  if (code == SQLITE_OK && !in_transaction()) return committed::Durable{};
  return refused_commit(code);
}

Committed Implementation::refused_commit(int result_code) {
  Error error = session_error(handle_, result_code, "COMMIT");
  switch (result_code & 0xff) {
    case SQLITE_CONSTRAINT:  // deferred foreign keys, or the application's own commit hook
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
      return undone(std::move(error));
    case SQLITE_BUSY:  // a statement of the handler still writes
      error.code = ErrorCode::invalid;
      return undone(std::move(error));
    default:  // an I/O error: what reached the disk is not known
      return committed::InDoubt{std::move(error)};
  }
}

void Implementation::roll_back() noexcept {
  put_hook(false);
  if (in_transaction() && has_turn_) roll_back_.run();
  claimed_.reset();
  if (std::exchange(has_turn_, false)) scopes_.give_turn();
  if (std::exchange(entered_, false)) scopes_.leave(claim_->scope);
}

/// Looks through a connection of its own: the old one may hold on to what it believes.
Result<bool> Implementation::became_durable() {
  const char* path = sqlite3_db_filename(handle_, "main");
  sqlite3* fresh = nullptr;
  const int code = sqlite3_open_v2(path ? path : "", &fresh, SQLITE_OPEN_READWRITE, nullptr);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> close(fresh, sqlite3_close_v2);
  if (code != SQLITE_OK) return tl::unexpected(session_error(fresh, code, "reading back"));
  SessionTables tables(fresh);
  if (auto known = tables.ensure(random_); !known) return pass_on(known);
  auto row = tables.find(claim_->scope);
  if (!row) return pass_on(row);
  const bool there = row->record && number(row->record->generation) ==
                                        static_cast<std::uint64_t>(state_.generation);
  if (there) return true;
  // The log may hold a commit that nobody sees now and that a crash would bring back, effect and
  // record together.
  return failure(ErrorCode::in_doubt, "sqlite session: it is not visible, but may be on the disk");
}

// --- upkeep

Result<bool> Implementation::sweep_one(const Now& now) {
  auto due = tables_.due(now.wall);
  if (!due) return pass_on(due);
  if (!*due) return false;
  const Step step = decide((*due)->record, event::Sweep{}, now);
  if (step.change == Step::Change::erase) {
    if (auto erased = tables_.erase((*due)->id); !erased) return pass_on(erased);
    return true;
  }
  if (step.change != Step::Change::put) return false;
  const Record& tombstone = *step.record;
  if (auto stripped = tables_.strip((*due)->id, *tombstone.expires + tombstone.policies.tombstone);
      !stripped)
    return pass_on(stripped);
  return true;
}

Result<std::size_t> Implementation::sweep(std::size_t limit) {
  if (auto usable = check_handle(); !usable) return pass_on(usable);
  const auto swept = [&]() -> Result<std::size_t> {
    if (auto begun = begin_write(options_.busy_limit); !begun) return pass_on(begun);
    SessionState state;
    auto now = look(state);
    if (!now) return pass_on(now);
    if (auto kept = tables_.set_state(state); !kept) return pass_on(kept);
    std::size_t touched = 0;
    for (bool more = !now->expiry_paused; more && touched < limit; touched += more ? 1 : 0) {
      auto one = sweep_one(*now);
      if (!one) return pass_on(one);
      more = *one;
    }
    if (const int code = commit_.run(); code != SQLITE_OK)
      return tl::unexpected(session_error(handle_, code, "sweeping"));
    return touched;
  }();
  roll_back();
  return swept;
}

}  // namespace

Result<std::unique_ptr<SqliteSession>> sqlite_session(sqlite3* handle, SqliteOpenScopes& scopes,
                                                      const Clock& clock, Random& random,
                                                      SqliteSessionOptions options) {
  auto session = std::make_unique<Implementation>(handle, scopes, clock, random, options);
  if (auto opened = session->open(); !opened) return pass_on(opened);
  return session;
}

}  // namespace einmal
