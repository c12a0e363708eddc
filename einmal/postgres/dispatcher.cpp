#include "einmal/postgres/dispatcher.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "einmal/postgres/record_row.hpp"
#include "einmal/store/check_request.hpp"

namespace einmal::postgres {

namespace {

using namespace std::chrono_literals;

/// Look-ups in one train.
constexpr std::size_t max_reads = 64;
/// Attempts of a transaction that the server undid to resolve a conflict.
constexpr int max_conflicts = 5;
/// How long an owner's event waits for the lock of its scope.
constexpr auto owner_patience = 5s;
constexpr std::size_t max_known_profiles = 1024;

std::vector<std::string> session_of_a_lane(Duration statement_timeout) {
  const auto milliseconds = [](Duration duration) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
  };
  return {"set statement_timeout = " + milliseconds(statement_timeout),
          "set lock_timeout = " + milliseconds(statement_timeout),
          "set idle_in_transaction_session_timeout = " + milliseconds(statement_timeout),
          "set default_transaction_isolation = 'read committed'"};
}

LaneOptions lane_options(const std::string& conninfo, Duration timeout, bool pooled) {
  return {conninfo, timeout, session_of_a_lane(timeout), pooled};
}

bool is_look_up(const Request& request) {
  return std::holds_alternative<request::ReadScope>(request) ||
         std::holds_alternative<request::ReadOperation>(request) ||
         std::holds_alternative<request::ReadProfile>(request);
}

bool is_step_of_workflow(const Request& request) {
  return std::holds_alternative<request::StartWorkflow>(request) ||
         std::holds_alternative<request::PickWorkflows>(request) ||
         std::holds_alternative<request::AdvanceWorkflow>(request) ||
         std::holds_alternative<request::ReadWorkflow>(request);
}

/// The server undid the transaction to resolve a conflict: trying again is what it asks for.
bool is_conflict(const std::string& sqlstate) { return sqlstate.starts_with("40"); }

/// Whether every command of a batch would meet the same error.
bool is_everybodys(const Error& error, const std::string& sqlstate) {
  return sqlstate.empty() || error.code == ErrorCode::unavailable ||
         error.code == ErrorCode::incompatible;
}

bool is_down(const Lane& lane) {
  return lane.state() == Lane::State::offline || lane.state() == Lane::State::connecting ||
         lane.state() == Lane::State::setting_up;
}

}  // namespace

// --- errands

/// Claims and owners' events in one transaction.
class Dispatcher::Batch final : public Errand {
 public:
  Batch(Dispatcher& dispatcher, std::vector<Waiting> claims, std::vector<Waiting> events)
      : Errand(statements_of(dispatcher, claims, events), true),
        dispatcher_(dispatcher),
        claims_(std::move(claims)),
        events_(std::move(events)),
        told_claims_(claims_.size()),
        told_events_(events_.size()),
        begun_(Pace::now()) {}

  void rows(std::size_t statement, const pg_result* result) override {
    const bool of_claims = statement == 0 && !claims_.empty();
    auto& told = of_claims ? told_claims_ : told_events_;
    read_steps(result, commands_of(of_claims ? claims_ : events_),
               [&](std::size_t at, StepAnswer answer) { told[at] = std::move(answer); });
  }

  void done() override {
    dispatcher_.committed(claims_.size() + events_.size(), begun_, !events_.empty());
    for (std::size_t i = 0; i < claims_.size(); ++i) tell(claims_[i], told_claims_[i]);
    for (std::size_t i = 0; i < events_.size(); ++i) tell(events_[i], told_events_[i]);
  }

  void failed(Error error, const std::string& sqlstate, bool in_doubt) override {
    std::vector<Waiting> members = std::move(claims_);
    members.insert(members.end(), events_.begin(), events_.end());
    dispatcher_.batch_failed(std::move(members), error, sqlstate, in_doubt);
  }

 private:
  static std::vector<Command*> commands_of(const std::vector<Waiting>& waiting) {
    std::vector<Command*> commands;
    for (const Waiting& each : waiting) commands.push_back(each.command);
    return commands;
  }

  static std::vector<Statement> statements_of(const Dispatcher& dispatcher,
                                              const std::vector<Waiting>& claims,
                                              const std::vector<Waiting>& events) {
    std::vector<Statement> statements;
    const Machine machine = dispatcher.machine();
    if (!claims.empty())
      statements.push_back(
          claims_statement(commands_of(claims), machine, dispatcher.known_profiles_));
    if (!events.empty()) statements.push_back(owner_events_statement(commands_of(events), machine));
    return statements;
  }

  void tell(const Waiting& waiting, std::optional<StepAnswer>& told) {
    if (!told) {
      dispatcher_.answer(waiting,
                         failure(ErrorCode::internal, "postgres: a command was not answered"));
    } else if (told->kind == StepAnswer::Kind::unusable) {
      dispatcher_.answer(waiting, tl::unexpected(std::move(told->error)));
    } else if (told->kind == StepAnswer::Kind::busy) {
      dispatcher_.held_too_long(waiting, std::move(told->record));
    } else {
      dispatcher_.learn(waiting, told->decision);
      dispatcher_.answer(waiting, std::move(told->decision));
    }
  }

  Dispatcher& dispatcher_;
  std::vector<Waiting> claims_, events_;
  std::vector<std::optional<StepAnswer>> told_claims_, told_events_;
  Pace::time_point begun_;
};

/// One command of any other kind.
class Dispatcher::Single final : public Errand {
 public:
  Single(Dispatcher& dispatcher, Waiting waiting, postgres::Single single)
      : Errand(std::move(single.statements), single.secure),
        dispatcher_(dispatcher),
        waiting_(waiting),
        begun_(Pace::now()) {}

  void rows(std::size_t statement, const pg_result* result) override {
    if (statement + 1 == statements().size() || !answer_) answer_.emplace(read(statement, result));
  }
  void done() override {
    if (durable()) dispatcher_.committed(1, begun_, true);
    if (busy_) return dispatcher_.held_too_long(waiting_, std::nullopt);
    dispatcher_.answer(
        waiting_, answer_ ? std::move(*answer_)
                          : failure(ErrorCode::internal, "postgres: a command was not answered"));
  }
  void failed(Error error, const std::string& sqlstate, bool in_doubt) override {
    dispatcher_.batch_failed({waiting_}, error, sqlstate, in_doubt);
  }

 private:
  Result<Answer> read(std::size_t statement, const pg_result* result) {
    if (statement + 1 != statements().size())
      return failure(ErrorCode::internal, "postgres: a command was not answered");
    return read_single(waiting_.command->request(), result, busy_);
  }

  Dispatcher& dispatcher_;
  Waiting waiting_;
  Pace::time_point begun_;
  bool busy_ = false;
  std::optional<Result<Answer>> answer_;
};

// --- life

Dispatcher::Dispatcher(const std::string& conninfo, const PostgresStoreOptions& options,
                       ServerTraits traits, const Clock& clock, Random& random)
    : options_(options),
      clock_(clock),
      wake_descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      news_(lane_options(conninfo, options.statement_timeout, false), traits.announces, random) {
  const LaneOptions fast = lane_options(conninfo, options.statement_timeout, traits.pooled);
  for (int i = 0; i < std::max(1, options.connections); ++i)
    lanes_.push_back(std::make_unique<Lane>(fast, random));
  slow_lane_ = std::make_unique<Lane>(
      lane_options(conninfo, 10 * options.statement_timeout, traits.pooled), random);
  thread_ = std::thread([this] { run(); });
}

Dispatcher::~Dispatcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_descriptor_, 1);
  thread_.join();
  close(wake_descriptor_);
}

void Dispatcher::submit(Command& command) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(&command);
    wake = asleep_;
    asleep_ = false;
  }
  if (wake) eventfd_write(wake_descriptor_, 1);
}

void Dispatcher::await_foreign_changes(bool wanted) {
  news_.wanted(wanted);
  eventfd_write(wake_descriptor_, 1);
}

void Dispatcher::run() {
  while (!finished()) {
    take_submitted();
    give_work();
    refuse_what_waited_too_long();
    news_.step();
    sleep();
  }
}

bool Dispatcher::finished() const {
  const auto busy = [](const std::unique_ptr<Lane>& lane) {
    return lane->state() == Lane::State::busy;
  };
  return last_call_ && batched_.empty() && reads_.empty() && slow_.empty() && !busy(slow_lane_) &&
         std::none_of(lanes_.begin(), lanes_.end(), busy);
}

void Dispatcher::take_submitted() {
  std::vector<Command*> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(submitted_);
    // What is submitted while the last answers are given belongs to nobody any more.
    last_call_ = stopping_ && arrived.empty();
  }
  const auto now = Pace::now();
  for (Command* command : arrived) {
    queue_of(*command).push_back({command, now, now, 0, false});
  }
}

Dispatcher::Queue& Dispatcher::queue_of(const Command& command) {
  if (is_claim(command) || is_owner_event(command)) return batched_;
  const Request& request = command.request();
  return is_look_up(request) || is_step_of_workflow(request) ? reads_ : slow_;
}

/// Waits until a connection has something to say, something is submitted or some time has come.
void Dispatcher::sleep() {
  std::vector<pollfd> descriptors{{wake_descriptor_, POLLIN, 0}};
  std::vector<Lane*> lanes;
  auto next = news_.deadline();
  const auto at = [&](Pace::time_point time) { next = next ? std::min(*next, time) : time; };
  const auto watch = [&](Lane* lane) {
    if (!lane) return;
    if (const auto deadline = lane->deadline()) at(*deadline);
    const short events = static_cast<short>(POLLIN | (lane->wants_write() ? POLLOUT : 0));
    descriptors.push_back({lane->descriptor(), events, 0});
    lanes.push_back(lane);
  };
  for (const auto& lane : lanes_) watch(lane.get());
  watch(slow_lane_.get());
  watch(news_.lane());
  // By the clock of the last look at the queues: what has become ready since was not seen by it.
  for (const Queue* queue : {&batched_, &reads_, &slow_}) {
    for (const Waiting& waiting : *queue) {
      // Others are ready and wait for a lane, whose descriptor will tell.
      if (waiting.not_before > looked_) at(waiting.not_before);
      if (waiting.since + options_.patience > looked_) at(waiting.since + options_.patience);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    asleep_ = submitted_.empty();
    if (!asleep_ || stopping_) at(Pace::now() + (stopping_ && asleep_ ? 5ms : 0ms));
  }
  // Up, not down: waking too early would spin.
  const auto left = next ? std::chrono::ceil<std::chrono::milliseconds>(*next - Pace::now()) : 1h;
  poll(descriptors.data(), descriptors.size(),
       static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000)));
  {
    const std::lock_guard lock(mutex_);
    asleep_ = false;
  }
  eventfd_t ignored = 0;
  if (descriptors[0].revents != 0) eventfd_read(wake_descriptor_, &ignored);
  const auto now = Pace::now();
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const auto deadline = lanes[i]->deadline();
    if (descriptors[i + 1].revents != 0 || (deadline && now >= *deadline)) lanes[i]->step();
  }
}

// --- work

bool Dispatcher::fast_lanes_are_down() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const std::unique_ptr<Lane>& lane) { return is_down(*lane); });
}

void Dispatcher::give_work() {
  looked_ = Pace::now();
  // A lane may be done before `run` returns, and have put back what failed: as long as it is idle
  // and something is ready it goes on, since nothing would wake it later.
  for (const auto& lane : lanes_) {
    while (lane->state() == Lane::State::idle) {
      auto train = next_train();
      if (train.empty()) break;
      lane->run(std::move(train));
    }
  }
  while (slow_lane_->state() == Lane::State::idle && give_single(*slow_lane_, slow_)) {
  }
}

/// Look-ups, each by itself, and behind them one transaction.
std::vector<std::unique_ptr<Errand>> Dispatcher::next_train() {
  std::vector<std::unique_ptr<Errand>> train;
  for (auto each = reads_.begin(); each != reads_.end() && train.size() < max_reads;) {
    if (each->not_before > looked_) {
      ++each;
      continue;
    }
    const Waiting waiting = *each;
    each = reads_.erase(each);
    train.push_back(std::make_unique<Single>(
        *this, waiting,
        single_statements(waiting.command->request(), machine(), options_.audit_retention)));
  }
  if (auto batch = next_batch()) train.push_back(std::move(batch));
  return train;
}

std::unique_ptr<Errand> Dispatcher::next_batch() {
  std::vector<Waiting> claims, events;
  Queue later;
  while (!batched_.empty() && claims.size() + events.size() < options_.max_batch) {
    const Waiting waiting = batched_.front();
    const bool first = claims.empty() && events.empty();
    if (waiting.alone && !first) break;
    batched_.pop_front();
    if (waiting.not_before > looked_) {
      later.push_back(waiting);
      continue;
    }
    (is_claim(*waiting.command) ? claims : events).push_back(waiting);
    if (waiting.alone) break;
  }
  batched_.insert(batched_.begin(), later.begin(), later.end());
  if (claims.empty() && events.empty()) return nullptr;
  return std::make_unique<Batch>(*this, std::move(claims), std::move(events));
}

bool Dispatcher::give_single(Lane& lane, Queue& queue) {
  const auto ready = std::find_if(queue.begin(), queue.end(),
                                  [&](const Waiting& each) { return each.not_before <= looked_; });
  if (ready == queue.end()) return false;
  const Waiting waiting = *ready;
  queue.erase(ready);
  std::vector<std::unique_ptr<Errand>> train;
  train.push_back(std::make_unique<Single>(
      *this, waiting,
      single_statements(waiting.command->request(), machine(), options_.audit_retention)));
  lane.run(std::move(train));
  return true;
}

void Dispatcher::refuse_what_waited_too_long() {
  if (fast_lanes_are_down()) {
    refuse(batched_, lanes_.front()->last_error());
    refuse(reads_, lanes_.front()->last_error());
  }
  if (is_down(*slow_lane_)) refuse(slow_, slow_lane_->last_error());
}

void Dispatcher::refuse(Queue& queue, const Error& why) {
  Queue kept, refused;
  for (const Waiting& waiting : queue)
    (looked_ - waiting.since >= options_.patience ? refused : kept).push_back(waiting);
  queue = std::move(kept);
  for (const Waiting& waiting : refused) answer(waiting, failure(why.code, why.message));
}

// --- answers

void Dispatcher::answer(const Waiting& waiting, Result<Answer> result) {
  waiting.command->completed(std::move(result));
}

/// Remembers the profile that a new record names, so that it is not sent again.
void Dispatcher::learn(const Waiting& waiting, const Decision& decision) {
  const auto* execute = std::get_if<decision::Execute>(&decision);
  if (!execute || execute->repeated || execute->takeover) return;
  const auto& profile = std::get<request::Transition>(waiting.command->request()).profile;
  if (!profile) return;
  if (known_profiles_.size() >= max_known_profiles) known_profiles_.clear();
  known_profiles_.insert(profile->id);
}

void Dispatcher::again_later(Waiting waiting) {
  // 1, 2, 4 ... 16 ms: between gateways a scope is held for as long as a commit takes.
  waiting.not_before = Pace::now() + 1ms * (1 << std::min(waiting.tries, 4));
  ++waiting.tries;
  queue_of(*waiting.command).push_back(waiting);
}

/// Somebody held the lock of the scope. A claim gives up soon: it is in progress there.
void Dispatcher::held_too_long(const Waiting& waiting, std::optional<Record> record) {
  const auto waited = Pace::now() - waiting.since;
  if (!is_claim(*waiting.command)) {
    if (waited < owner_patience) return again_later(waiting);
    return answer(waiting, failure(ErrorCode::unavailable,
                                   "postgres: another transaction holds the scope; try again"));
  }
  if (waited < options_.scope_patience) return again_later(waiting);
  const auto& claim =
      std::get<event::Claim>(std::get<request::Transition>(waiting.command->request()).event);
  if (!record) {
    // Uncommitted, so nothing is known of it: neither generation nor operation id.
    record.emplace();
    record->fingerprint = claim.fingerprint;
    record->policies = claim.policies;
  }
  answer(waiting, Decision(decision::InProgress{std::move(*record), std::nullopt, Duration{}}));
}

void Dispatcher::batch_failed(std::vector<Waiting> members, const Error& error,
                              const std::string& sqlstate, bool in_doubt) {
  const bool conflict = is_conflict(sqlstate);
  // The session's prepared statements no longer fit the schema; they are made anew.
  const bool stale_plan = sqlstate == "0A000" || sqlstate == "26000";
  for (Waiting& waiting : members) {
    if (in_doubt) {
      answer(waiting, failure(ErrorCode::in_doubt, error.message));
    } else if ((conflict || stale_plan) && waiting.tries < max_conflicts) {
      ++waiting.tries;
      waiting.not_before = Pace::now();
      queue_of(*waiting.command).push_back(waiting);
    } else if (members.size() > 1 && !is_everybodys(error, sqlstate)) {
      waiting.alone = true;
      batched_.push_back(waiting);
    } else {
      answer(waiting, tl::unexpected(error));
    }
  }
}

void Dispatcher::committed(std::size_t commands, Pace::time_point begun, bool changed_for_waiters) {
  if (changed_for_waiters) news_.committed();
  if (StoreObserver* observer = observer_)
    observer->committed(commands, std::chrono::duration_cast<Duration>(Pace::now() - begun));
}

}  // namespace einmal::postgres
