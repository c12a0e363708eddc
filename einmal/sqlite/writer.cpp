#include "einmal/sqlite/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "einmal/sqlite/columns.hpp"
#include "einmal/store/check_request.hpp"

namespace einmal::sqlite {

using sqlite_file::Connection;
using sqlite_file::Transaction;

namespace {

/// A pause that lets another process's writer find the lock free: longer than one nap of its busy
/// handler.
constexpr Duration yield_least = std::chrono::microseconds(500);
/// How long after a foreign commit another writer is taken to be at work.
constexpr Duration foreign_activity_lasts = std::chrono::milliseconds(50);
constexpr std::int64_t rows_in_a_patrol = 2000;
/// How long a start of the WAL from its beginning waits for readers of the old one.
constexpr Duration restart_wait = std::chrono::milliseconds(50);
constexpr Duration foreign_poll_interval = std::chrono::milliseconds(5);

Duration steady_now() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

tl::unexpected<Error> again(const Error& error) { return tl::unexpected<Error>(error); }

}  // namespace

Writer::Writer(OpenFile how, std::unique_ptr<StoreFile> file, const ScopeDigests& digests,
               StoreClock& clock, Random& random, Intake& intake, Reader& reader,
               Checkpointer& checkpointer)
    : how_(std::move(how)),
      file_(std::move(file)),
      digests_(digests),
      clock_(clock),
      random_(random),
      intake_(intake),
      reader_(reader),
      checkpointer_(checkpointer) {
  kept_clock_ = clock_.state();
  random_.fill(&id_, sizeof id_);
  id_ &= 0x7fffffffffffffff;
}

// --- the loop

void Writer::run() {
  Intake::Work work;
  while (true) {
    work.claims.clear();
    work.others.clear();
    const bool poll = awaited_.load();
    intake_.wait_for_writes(work, how_.options.max_batch,
                            poll ? std::optional(foreign_poll_interval) : std::nullopt);
    if (work.stopping) break;
    round(work);
    if (clock_pauses_otherwise()) static_cast<void>(keep_clock());
    if (poll && work.claims.empty() && work.others.empty()) poll_foreign_changes();
  }
  if (file_) leave();
}

// A clean end: the next one to open the file finds the clock as it was last seen.
void Writer::leave() {
  if (clock_.state() != kept_clock_) static_cast<void>(keep_clock());
  if (file_) static_cast<void>(file_->meta.remove_writer(id_));
}

// Whether the pause of expiry is not yet in the file as it should be.
bool Writer::clock_pauses_otherwise() const { return clock_.state().paused != kept_clock_.paused; }

Result<void> Writer::keep_clock() {
  if (!ensure_open()) return again(open_error_);
  Transaction transaction(file_->transactions);
  if (auto begun = transaction.begin_write(); !begun) return begun;
  if (auto noticed = notice_foreign_changes({}); !noticed) return noticed;
  generation_ = committed_generation_;
  if (auto ended = end(true); !ended) return ended;
  auto committed = transaction.commit();
  if (committed) {
    kept_clock_ = written_clock_;
  } else if (committed.error().code == ErrorCode::in_doubt) {
    file_.reset();  // which of the two it was does not matter: it is written again
  }
  return committed;
}

void Writer::round(Intake::Work& work) {
  items_.clear();
  const auto add = [this](Command* command) {
    Item& item = items_.emplace_back();
    item.command = command;
    if (const auto* transition = std::get_if<request::Transition>(&command->request())) {
      item.digest = digests_.of(transition->scope);
    }
  };
  for (Command* claim : work.claims) add(claim);
  if (!items_.empty() && ensure_open()) look_up_claims();
  for (Command* write : work.others) add(write);
  if (items_.empty()) return;
  if (!ensure_open()) return answer_all(items_, open_error_);
  commit(items_);
  tend_wal();
  yield_to_others();
}

// Answers the claims that change nothing; the others stay in items_ with what was found.
void Writer::look_up_claims() {
  Transaction transaction(file_->transactions);
  if (auto begun = transaction.begin_read(); !begun) return;
  const Now now = clock_.now();
  const auto answered = [&](Item& item) {
    auto& transition = std::get<request::Transition>(item.command->request());
    auto row = file_->records->find(item.digest, transition.scope, Load::whole);
    if (!row) {
      item.command->completed(pass_on(row));
      return true;
    }
    Step step = decide(row->record, transition.event, now);
    if (step.change == Step::Change::none && !step.audit) {
      item.command->completed(Answer(std::move(step.decision)));
      return true;
    }
    item.row = std::move(*row);
    return false;
  };
  items_.erase(std::remove_if(items_.begin(), items_.end(), answered), items_.end());
}

// --- one batch

void Writer::commit(Items items) {
  const Duration started = steady_now();
  auto committed = run_transaction(items);
  if (committed) {
    if (auto* observer = observer_.load())
      observer->committed(items.size(), steady_now() - started);
    return answer(items);
  }
  if (committed.error().code == ErrorCode::in_doubt) return recover(items, committed.error());
  if (!broken_ || items.size() == 1) return answer_all(items, committed.error());
  commit_halves(items);
}

// One command that cannot be written must not take the others with it.
void Writer::commit_halves(Items items) {
  for (Item& item : items) item.row.reset();
  const auto half = items.size() / 2;
  commit(items.first(half));
  if (!ensure_open()) return answer_all(items.subspan(half), open_error_);
  commit(items.subspan(half));
}

Result<void> Writer::run_transaction(Items items) {
  broken_ = false;
  wrote_ = false;
  touched_.clear();
  Transaction transaction(file_->transactions);
  intake_.writer_goes_away();
  auto begun = transaction.begin_write();
  intake_.writer_is_back();
  if (!begun) return begun;
  if (auto noticed = notice_foreign_changes(items); !noticed) return noticed;
  generation_ = committed_generation_;
  now_ = clock_.now();

  Result<void> failed;
  for (Item& item : items) {
    item.answer = execute(item);
    if (!item.answer && !file_->connection->in_transaction()) broken_ = true;
    if (broken_) {
      failed = pass_on(item.answer);
      break;
    }
  }
  if (failed && wrote_) failed = end(false);
  if (!failed) {
    rolled_back();
    return failed;
  }
  if (!wrote_) return {};

  intake_.writer_goes_away();
  auto committed = transaction.commit();
  intake_.writer_is_back();
  if (!committed) {
    rolled_back();
    return committed;
  }
  kept_clock_ = written_clock_;
  committed_generation_ = generation_;
  highest_generation_ = std::max(highest_generation_, generation_);
  return {};
}

// What was remembered of this transaction is not so.
void Writer::rolled_back() {
  broken_ = true;
  data_version_ = -1;
  file_->profiles->forget_additions();
  open_records_.forget_all();
}

Result<void> Writer::notice_foreign_changes(Items items) {
  auto version = file_->meta.data_version();
  if (!version) return pass_on(version);
  if (*version == data_version_) return {};
  const bool first = data_version_ < 0;
  for (Item& item : items) item.row.reset();
  open_records_.forget_all();
  if (auto may = check_may_write(*file_); !may) return may;
  auto generation = file_->meta.generation();
  if (!generation) return pass_on(generation);
  if (auto patrolled = file_->agenda->read_patrolled(); !patrolled) return patrolled;
  auto clock = file_->meta.clock();
  if (!clock) return pass_on(clock);
  if (*clock != kept_clock_) {
    clock_.adopt(*clock);
    kept_clock_ = *clock;
  }
  committed_generation_ = *generation;
  data_version_ = *version;
  // A WAL that this writer has started again looks like a change, too.
  if (first || std::exchange(restarted_wal_, false)) return {};
  seen_foreign_ = true;
  foreign_activity_ = BootTime(steady_now());
  announce_foreign_change();
  return {};
}

// The rows that every writing transaction brings up to date.
Result<void> Writer::end(bool clock_too) {
  if (generation_ != committed_generation_) {
    if (auto set = file_->meta.set_generation(generation_); !set) return set;
  }
  const auto clock = clock_.state();
  const bool keep = clock_too || !kept_clock_.last || clock.paused != kept_clock_.paused ||
                    !clock.last || clock.last->boot_id != kept_clock_.last->boot_id ||
                    clock.last->boot - kept_clock_.last->boot > std::chrono::seconds(10);
  written_clock_ = keep ? clock : kept_clock_;
  if (keep) {
    if (auto set = file_->meta.set_clock(clock); !set) return set;
  }
  return file_->meta.set_batch(id_, ++batch_, now_.wall);
}

void Writer::answer(Items items) {
  for (Item& item : items) item.command->completed(std::move(item.answer));
}

void Writer::answer_all(Items items, const Error& error) {
  for (Item& item : items) item.command->completed(again(error));
}

// --- commands

Result<Answer> Writer::execute(Item& item) {
  Request& request = item.command->request();
  if (auto* transition = std::get_if<request::Transition>(&request)) return on(item, *transition);
  if (auto* overdue = std::get_if<request::Overdue>(&request)) return on(*overdue);
  if (auto* sweep = std::get_if<request::Sweep>(&request)) return on(*sweep);
  if (auto* advance = std::get_if<request::AdvanceGenerations>(&request)) return on(*advance);
  if (auto* accept = std::get_if<request::AcceptTime>(&request)) return on(*accept);
  return on_workflow(item);
}

Result<Answer> Writer::on(Item& item, request::Transition& transition) {
  if (auto found = find_row(item, transition.scope); !found) return pass_on(found);
  auto* claim = std::get_if<event::Claim>(&transition.event);
  if (claim) claim->generation = Generation{static_cast<std::uint64_t>(generation_ + 1)};
  Step step = decide(item.row->record, transition.event, now_);
  if (step.change == Step::Change::none && !step.audit) {
    remember(item, transition.scope);
    return Answer(std::move(step.decision));
  }
  const auto* execute = std::get_if<decision::Execute>(&step.decision);
  if (execute && !execute->repeated) {
    if (committed_generation_ < highest_generation_) {
      return failure(ErrorCode::incompatible,
                     fmt::format("{}: the generation counter went back from {} to {}: the file was "
                                 "replaced; run `einmal migrate --after-restore`",
                                 how_.path, highest_generation_, committed_generation_));
    }
    ++generation_;
  }
  touched_.insert(item.digest);
  if (claim) item.row->findable_by_id = transition.findable_by_id;
  if (execute && !execute->takeover && transition.profile) {
    if (auto kept = file_->profiles->keep(*transition.profile); !kept) {
      broken_ = true;
      return pass_on(kept);
    }
  }
  auto applied = apply(*item.row, item.digest, transition.scope, step, transition.actor);
  if (!applied) return pass_on(applied);
  remember(item, transition.scope);
  return Answer(std::move(step.decision));
}

// The row as it stands in this transaction: as written last, or as looked up just before, or read.
Result<void> Writer::find_row(Item& item, const Scope& scope) {
  if (auto known = open_records_.take(item.digest, scope)) {
    item.row = std::move(known);
    return {};
  }
  if (item.row && !touched_.contains(item.digest)) return {};
  auto row = file_->records->find(item.digest, scope, Load::whole);
  if (!row) return pass_on(row);
  item.row = std::move(*row);
  return {};
}

void Writer::remember(Item& item, const Scope& scope) {
  if (item.row->record && item.row->record->state == State::processing) {
    open_records_.keep(item.digest, scope, std::move(*item.row));
  }
}

Result<void> Writer::apply(Row& row, std::int64_t digest, const Scope& scope, Step& step,
                           const Actor& actor) {
  wrote_ = true;
  broken_ = true;  // until everything is written
  const auto operation_id = row.record ? row.record->operation_id : OperationId();
  if (step.change == Step::Change::put) {
    auto put = file_->records->put(row, digest, scope, std::move(*step.record));
    if (!put) return put;
  } else if (step.change == Step::Change::erase) {
    if (auto erased = file_->records->erase(row); !erased) return erased;
  }
  if (step.audit) {
    AuditRow note{now_.wall, scope, step.audit->before ? operation_id : OperationId(),
                  std::move(*step.audit), actor};
    if (auto added = file_->audits->add(digest, note); !added) return added;
  }
  broken_ = false;
  return {};
}

Result<Answer> Writer::on(const request::Overdue& overdue) {
  const auto limit = bounded(overdue.limit);
  answer::Moved moved;
  auto unknown = patrol();
  if (!unknown) return pass_on(unknown);
  auto due = file_->agenda->overdue(now_, limit);
  if (!due) return pass_on(due);
  moved.more = *unknown || due->size() == limit;
  for (const std::int64_t id : *due) {
    if (auto done = attend_to(id, event::Overdue{}, moved); !done) return pass_on(done);
  }
  return Answer(moved);
}

Result<Answer> Writer::on(const request::Sweep& sweep) {
  answer::Moved moved;
  if (now_.expiry_paused) return Answer(moved);
  const auto limit = bounded(sweep.limit);
  auto unknown = patrol();
  if (!unknown) return pass_on(unknown);
  auto due = file_->agenda->due_for_sweep(now_.wall, limit);
  if (!due) return pass_on(due);
  moved.more = *unknown || due->size() == limit;
  for (const std::int64_t id : *due) {
    if (auto done = attend_to(id, event::Sweep{}, moved); !done) return pass_on(done);
  }
  broken_ = true;
  auto dropped = file_->audits->drop_before(now_.wall - how_.options.audit_retention, limit);
  if (!dropped) return pass_on(dropped);
  broken_ = false;
  wrote_ = wrote_ || *dropped > 0;
  return Answer(moved);
}

// Whether there are records that the agenda does not know yet.
Result<bool> Writer::patrol() {
  broken_ = true;
  auto patrolled = file_->agenda->patrol(rows_in_a_patrol);
  if (!patrolled) return pass_on(patrolled);
  broken_ = false;
  wrote_ = wrote_ || patrolled->any;
  return patrolled->more;
}

Result<void> Writer::attend_to(std::int64_t id, const Event& event, answer::Moved& moved) {
  auto located = file_->records->by_id(id);
  if (!located) return pass_on(located);
  if (!*located) {
    return failure(ErrorCode::corrupt,
                   fmt::format("{}: the agenda names row {}, which is not there", how_.path, id));
  }
  auto& [row, scope] = **located;
  const auto digest = digests_.of(scope);
  Step step = decide(row.record, event, now_);
  if (step.change == Step::Change::none) return {};
  const bool strips =
      step.change == Step::Change::put && std::holds_alternative<event::Sweep>(event);
  const bool counts = !std::holds_alternative<decision::Unchanged>(step.decision);
  touched_.insert(digest);
  open_records_.take(digest, scope);
  if (auto applied = apply(row, digest, scope, step, Actor{}); !applied) return applied;
  if (strips) ++moved.stripped;
  if (counts && !strips) ++moved.changed;
  return {};
}

Result<Answer> Writer::on(const request::AdvanceGenerations& advance) {
  generation_ += std::int64_t{1} << 32;
  return note_of_the_store(AuditEvent::generations_advanced, advance.actor);
}

Result<Answer> Writer::on(const request::AcceptTime& accept) {
  clock_.accept();
  now_ = clock_.now();
  return note_of_the_store(AuditEvent::time_accepted, accept.actor);
}

Result<Answer> Writer::note_of_the_store(AuditEvent event, const Actor& actor) {
  AuditRow note;
  note.at = now_.wall;
  note.audit.event = event;
  note.audit.generation = Generation{static_cast<std::uint64_t>(generation_)};
  note.actor = actor;
  wrote_ = true;
  broken_ = true;
  if (auto added = file_->audits->add(0, note); !added) return pass_on(added);
  broken_ = false;
  return Answer(answer::Done{});
}

// --- the WAL

void Writer::tend_wal() {
  if (!file_) return;
  Connection& connection = *file_->connection;
  const auto bytes = connection.wal_bytes();
  checkpointer_.wal_has(bytes);
  if (!checkpointer_.restart_is_due(bytes)) return;
  intake_.writer_goes_away();
  connection.set_busy_limit(restart_wait);
  auto restarted = connection.checkpoint(Connection::CheckpointMode::restart);
  connection.set_busy_limit(how_.options.busy_limit);
  intake_.writer_is_back();
  restarted_wal_ = true;
  checkpointer_.restart_tried(restarted && !restarted->blocked ? 0 : bytes);
}

// --- failures

bool Writer::ensure_open() {
  if (file_) return true;
  auto opened = open_store_file_again(how_, random_);
  if (!opened) {
    open_error_ = opened.error();
    return false;
  }
  file_ = std::move(*opened);
  open_records_.forget_all();
  data_version_ = -1;
  return true;
}

// COMMIT failed and the transaction is gone: its frames may be in the WAL or not. What counts is
// what the next one to open the file will see, so it is opened anew and read back.
void Writer::recover(Items items, const Error& doubt) {
  intake_.writer_goes_away();
  file_.reset();
  reader_.drop_file();
  checkpointer_.drop_file();
  auto found = ensure_open() ? read_back() : Result<bool>(again(open_error_));
  intake_.writer_is_back();
  if (!found) {
    file_.reset();
    return answer_all(items, {ErrorCode::in_doubt,
                              doubt.message + "; reading back failed: " + found.error().message});
  }
  if (*found) {
    highest_generation_ = std::max(highest_generation_, generation_);
    return answer(items);
  }
  answer_all(items, {ErrorCode::unavailable, doubt.message + "; it was rolled back"});
}

// Whether the last batch is in the file. Before this is believed, a transaction of its own goes
// through (it takes the place of frames that a later recovery could still find) and a checkpoint
// brings everything into the database file.
Result<bool> Writer::read_back() {
  auto last = file_->meta.last_batch(id_);
  if (!last) return pass_on(last);
  const bool found = *last == batch_;
  auto marked = file_->meta.set_batch(id_, ++batch_, clock_.wall());
  if (!marked) return pass_on(marked);
  auto copied = file_->connection->checkpoint(Connection::CheckpointMode::passive);
  if (!copied) return pass_on(copied);
  return found;
}

// --- other processes

void Writer::yield_to_others() {
  if (!seen_foreign_ || !file_) return;
  const Duration now = steady_now();
  if (now - foreign_activity_.time_since_epoch() > foreign_activity_lasts) {
    seen_foreign_ = false;
    return;
  }
  const auto pause = yield_least + Duration(random_.below(200));
  intake_.writer_goes_away();
  std::this_thread::sleep_for(pause);
  intake_.writer_is_back();
}

void Writer::poll_foreign_changes() {
  if (!ensure_open()) return;
  auto version = file_->meta.data_version();
  if (!version || *version == data_version_) return;
  announce_foreign_change();
}

void Writer::announce_foreign_change() {
  if (!awaited_.load()) return;
  const std::lock_guard lock(listener_mutex_);
  if (listener_) listener_();
}

void Writer::await_foreign_changes(bool wanted) {
  awaited_.store(wanted);
  intake_.wake_writer();
}

void Writer::on_foreign_change(std::function<void()> listener) {
  const std::lock_guard lock(listener_mutex_);
  listener_ = std::move(listener);
}

}  // namespace einmal::sqlite
