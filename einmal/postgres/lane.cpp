#include "einmal/postgres/lane.hpp"

#include <libpq-fe.h>

#include <algorithm>

namespace einmal::postgres {

namespace {

using namespace std::chrono_literals;

constexpr auto connect_timeout = 5s;
constexpr auto longest_pause = 2s;
/// Beyond the server's own statement timeout, a silent connection is a dead one.
constexpr auto grace = 5s;

void drop_notice(void*, const pg_result*) {}

}  // namespace

Lane::Lane(LaneOptions options, Random& random) : options_(std::move(options)), random_(random) {}
Lane::~Lane() { close({ErrorCode::unavailable, "postgres: the store is closing"}); }

int Lane::descriptor() const { return connection_ ? PQsocket(connection_.get()) : -1; }

bool Lane::wants_write() const {
  return (state_ == State::connecting && polling_ == PGRES_POLLING_WRITING) || unsent_;
}

std::optional<Pace::time_point> Lane::deadline() const {
  if (state_ == State::idle) return std::nullopt;
  return deadline_;
}

void Lane::arrive_at(State state) {
  state_ = state;
  switch (state) {
    case State::connecting:
    case State::setting_up:
      deadline_ = Pace::now() + connect_timeout;
      break;
    case State::busy:
    case State::rolling_back:
      deadline_ = Pace::now() + options_.statement_timeout + grace;
      break;
    case State::offline:
    case State::idle:
      break;
  }
}

// --- connecting

void Lane::start_connecting() {
  const char* keywords[] = {"fallback_application_name",
                            "target_session_attrs",
                            "keepalives_idle",
                            "tcp_user_timeout",
                            "dbname",
                            nullptr};
  const char* values[] = {"einmal", "read-write", "10", "15000", options_.conninfo.c_str(),
                          nullptr};
  connection_.reset(PQconnectStartParams(keywords, values, 1));
  if (!connection_ || PQstatus(connection_.get()) == CONNECTION_BAD)
    return lose("postgres: cannot connect");
  PQsetNoticeReceiver(connection_.get(), drop_notice, nullptr);
  polling_ = PGRES_POLLING_WRITING;
  arrive_at(State::connecting);
}

void Lane::go_on_connecting() {
  polling_ = PQconnectPoll(connection_.get());
  if (polling_ == PGRES_POLLING_FAILED) return lose("postgres: cannot connect");
  if (polling_ == PGRES_POLLING_OK) set_up();
}

void Lane::set_up() {
  if (PQsetnonblocking(connection_.get(), 1) != 0 || PQenterPipelineMode(connection_.get()) != 1)
    return lose("postgres: cannot connect");
  prepared_.clear();
  arrive_at(State::setting_up);
  bool sent = true;
  session_sent_ = options_.pooled ? 0 : options_.session.size();
  for (std::size_t i = 0; i < session_sent_; ++i) sent = sent && send(options_.session[i].c_str());
  // A lane without session state asks for something all the same: a pooler accepts connections that
  // its server does not.
  if (session_sent_ == 0) {
    session_sent_ = 1;
    sent = sent && send("select 1");
  }
  for (std::size_t i = 0; i < session_sent_; ++i) owed_.push_back({Owed::Kind::begin, 0, 0});
  sent = sent && sync(0);
  if (!sent) return lose("postgres: cannot connect");
  step();
}

void Lane::lose(const char* what) {
  last_error_ =
      connection_ ? connection_error(connection_.get(), what) : Error{ErrorCode::unavailable, what};
  close(last_error_);
}

void Lane::close(Error why) {
  connection_.reset();
  unsent_ = stale_ = false;
  state_ = State::offline;
  // 20 ms, 40 ms ... 2 s, each with as much again by chance: many gateways must not come together.
  const auto pause = std::min<Pace::duration>(20ms * (1 << std::min(attempts_, 8)), longest_pause);
  const auto jitter = random_.below(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(pause).count() + 1));
  deadline_ = Pace::now() + pause / 2 + std::chrono::microseconds(jitter / 2);
  ++attempts_;
  fail_train(why);
}

// --- sending

void Lane::run(std::vector<std::unique_ptr<Errand>> train) {
  train_ = std::move(train);
  progress_.assign(train_.size(), {});
  arrive_at(State::busy);
  for (std::size_t i = 0; i < train_.size(); ++i) {
    if (!send_errand(i)) return lose("postgres: sending failed");
  }
  step();
}

bool Lane::send_errand(std::size_t index) {
  const Errand& errand = *train_[index];
  if (errand.durable()) {
    if (!send("begin isolation level read committed read write")) return false;
    owed_.push_back({Owed::Kind::begin, index, 0});
  }
  for (std::size_t i = 0; i < errand.statements().size(); ++i) {
    if (!send_statement(index, i)) return false;
  }
  if (errand.durable()) {
    if (!send("commit")) return false;
    owed_.push_back({Owed::Kind::commit, index, 0});
  }
  return sync(index);
}

bool Lane::send_statement(std::size_t index, std::size_t at) {
  const Statement& statement = train_[index]->statements()[at];
  const Parameters& parameters = statement.parameters;
  std::vector<const char*> values;
  std::vector<int> lengths;
  const std::vector<int> formats(parameters.values().size(), 1);
  for (const Value& value : parameters.values()) {
    values.push_back(value ? value->data() : nullptr);
    lengths.push_back(value ? static_cast<int>(value->size()) : 0);
  }
  pg_conn* connection = connection_.get();
  if (options_.pooled) {
    owed_.push_back({Owed::Kind::rows, index, at});
    return PQsendQueryParams(connection, statement.sql, parameters.count(),
                             parameters.types().data(), values.data(), lengths.data(),
                             formats.data(), 1) == 1;
  }
  if (prepared_.insert(statement.name).second) {
    owed_.push_back({Owed::Kind::prepare, index, at});
    if (PQsendPrepare(connection, statement.name, statement.sql, parameters.count(),
                      parameters.types().data()) != 1)
      return false;
  }
  owed_.push_back({Owed::Kind::rows, index, at});
  return PQsendQueryPrepared(connection, statement.name, parameters.count(), values.data(),
                             lengths.data(), formats.data(), 1) == 1;
}

bool Lane::send(const char* sql) {
  return PQsendQueryParams(connection_.get(), sql, 0, nullptr, nullptr, nullptr, nullptr, 1) == 1;
}

bool Lane::sync(std::size_t errand) {
  owed_.push_back({Owed::Kind::sync, errand, 0});
  return PQpipelineSync(connection_.get()) == 1;
}

// --- receiving

void Lane::step() {
  const bool late = state_ != State::idle && Pace::now() >= deadline_;
  if (state_ == State::offline) {
    if (late) start_connecting();
    return;
  }
  if (late) return lose("postgres: no answer in time");
  if (state_ == State::connecting) return go_on_connecting();
  const int flushed = PQflush(connection_.get());
  unsent_ = flushed == 1;
  if (flushed < 0 || PQconsumeInput(connection_.get()) != 1)
    return lose("postgres: connection lost");
  read();
}

void Lane::read() {
  // "No result" separates the results of one statement from those of the next; more than a few of
  // them in a row would mean that the server owes nothing any more.
  int separators = 0;
  while (!owed_.empty() && !PQisBusy(connection_.get())) {
    const ResultHandle result(PQgetResult(connection_.get()));
    separators = result ? 0 : separators + 1;
    if (result) take(result.get());
    if (!connection_) return;  // it ended by what it said
    if (PQstatus(connection_.get()) != CONNECTION_OK || separators > 8)
      return lose("postgres: connection lost");
  }
  while (PGnotify* notify = PQnotifies(connection_.get())) {
    if (on_notify) on_notify(notify->relname, notify->extra);
    PQfreemem(notify);
  }
  if (owed_.empty() && state_ != State::idle) end_train();
}

void Lane::take(const pg_result* result) {
  const Owed owed = owed_.front();
  const auto status = PQresultStatus(result);
  if (status == PGRES_FATAL_ERROR && PQstatus(connection_.get()) != CONNECTION_OK) {
    // The server ended the session: whatever was under way is lost with it.
    last_error_ = error_of(result, "postgres");
    return close(last_error_);
  }
  owed_.pop_front();
  if (state_ == State::setting_up && status == PGRES_FATAL_ERROR) {
    last_error_ = error_of(result, "postgres: setting up the session");
    return close(last_error_);
  }
  if (state_ == State::busy) take_of_errand(owed, result);
}

void Lane::take_of_errand(const Owed& owed, const pg_result* result) {
  Progress& progress = progress_[owed.errand];
  const auto status = PQresultStatus(result);
  if (owed.kind == Owed::Kind::sync) {
    end_errand(owed.errand);
  } else if (status == PGRES_FATAL_ERROR) {
    progress.error = error_of(result, "postgres");
    progress.sqlstate = sqlstate_of(result);
    stale_ = stale_ || progress.sqlstate == "0A000" || progress.sqlstate == "26000";
    if (owed.kind == Owed::Kind::prepare)
      prepared_.erase(train_[owed.errand]->statements()[owed.statement].name);
  } else if (status == PGRES_PIPELINE_ABORTED) {
    // A statement before it failed; that one has said why.
    if (owed.kind == Owed::Kind::prepare)
      prepared_.erase(train_[owed.errand]->statements()[owed.statement].name);
  } else if (owed.kind == Owed::Kind::rows) {
    train_[owed.errand]->rows(owed.statement, result);
  } else if (owed.kind == Owed::Kind::commit &&
             std::string_view(PQcmdStatus(const_cast<pg_result*>(result))) != "COMMIT") {
    progress.error = Error{ErrorCode::unavailable, "postgres: the server rolled back at COMMIT"};
    progress.sqlstate = "40000";
  }
}

void Lane::end_errand(std::size_t index) {
  Progress& progress = progress_[index];
  progress.ended = true;
  const std::unique_ptr<Errand> errand = std::move(train_[index]);
  progress.error ? errand->failed(*progress.error, progress.sqlstate, false) : errand->done();
}

/// Everything owed has come: the session is idle, or in a failed transaction that is rolled back
/// first.
void Lane::end_train() {
  if (state_ == State::setting_up) attempts_ = 0;
  train_.clear();
  if (stale_) return close({ErrorCode::unavailable, "postgres: the schema changed"});
  if (PQtransactionStatus(connection_.get()) == PQTRANS_IDLE) return arrive_at(State::idle);
  arrive_at(State::rolling_back);
  owed_.push_back({Owed::Kind::begin, 0, 0});
  if (!send("rollback") || !sync(0)) return lose("postgres: connection lost");
  step();
}

void Lane::fail_train(const Error& error) {
  owed_.clear();
  std::vector<std::unique_ptr<Errand>> train = std::move(train_);
  train_.clear();
  for (std::size_t i = 0; i < train.size(); ++i) {
    if (!train[i]) continue;
    // An error before COMMIT ended the transaction for certain; anything else leaves it open.
    const bool in_doubt = train[i]->durable() && !progress_[i].error;
    train[i]->failed(progress_[i].error.value_or(error), progress_[i].sqlstate, in_doubt);
  }
}

}  // namespace einmal::postgres
