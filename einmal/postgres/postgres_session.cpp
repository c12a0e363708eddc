#include "einmal/postgres/postgres_session.hpp"

#include <libpq-fe.h>

#include <chrono>
#include <thread>
#include <vector>

#include "einmal/postgres/connection.hpp"
#include "einmal/postgres/connection_notes.hpp"
#include "einmal/postgres/record_row.hpp"
#include "einmal/postgres/statements.hpp"

namespace einmal {

namespace {

using namespace postgres;
using Pace = std::chrono::steady_clock;

constexpr const char* claim_sql =
    "select decision, generation, owner, operation_id, status, headers, body, resource_id, "
    "retry_after, representation_version, resolved, effect_known, profile, outcome, body_kept "
    "from einmal.claim($1, $2, $3, $4, retention => $5, in_flight => $6, wait => $7, "
    "namespace => $8, owner => $9, profile => $10, after_expiry => $11, tombstone => $12)";

constexpr const char* settle_sql =
    "select einmal.must(case when $1 then einmal.complete($2, $3, $4, $5, $6, $7, $8, $9, $10, "
    "$11, "
    "$12) else einmal.fail($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) end)";

/// One result that the server owes: of a statement, or of preparing the one named.
struct Owed {
  const char* preparing = nullptr;
};

/// The results of statements that were sent together, or the error of the first that failed.
struct Sent {
  std::vector<ResultHandle> results;  ///< One a statement, up to the one that failed.
  std::optional<Error> error;
  std::string sqlstate;  ///< Empty with an error: the connection was lost.
};

class PostgresSession final : public Session {
 public:
  PostgresSession(pg_conn* connection, Random& random, PostgresSessionOptions options)
      : connection_(connection), random_(random), options_(options) {}

  Result<Claimed> begin(const TransactionClaim& claim) override;
  Committed commit(event::Final outcome, const StoredResult& result, bool keep_effect) override;
  void roll_back() noexcept override;
  bool had_conflict() const override {
    const ConnectionNotes* notes = notes_of(connection_);
    return notes && notes->conflict;
  }
  void pause(int attempt) override;
  Result<bool> became_durable() override;

 private:
  Result<void> check_connection() const;
  Statement claim_statement(bool wait, Duration longest) const;
  Statement settle_statement(event::Final outcome, const StoredResult& result) const;
  Sent send_together(const std::vector<Statement>& statements);
  bool send(const Statement& statement, std::vector<Owed>& owed);
  Sent receive(const std::vector<Owed>& owed);
  void tidy();
  Committed undone(Sent sent);
  Result<bool> look_again();

  pg_conn* connection_;
  Random& random_;
  const PostgresSessionOptions options_;
  std::optional<TransactionClaim> claim_;
  OwnerToken owner_;
  Generation generation_{};
  OperationId operation_id_;
  Pace::time_point commit_sent_{};
};

Statement plain(const char* sql) { return {nullptr, sql, {}}; }

Result<Claimed> claimed_of(const Row& row) {
  const BytesView decision = row.bytes(0);
  const auto id = OperationId::from_bytes(row.bytes(3));
  if (decision == "execute" && id)
    return claimed::Execute{Generation{static_cast<std::uint64_t>(row.integer(1))}, *id};
  if (decision == "replay" && id) {
    claimed::Replay replay;
    replay.state = row.bytes(13) == "failed" ? State::failed : State::completed;
    replay.operation_id = *id;
    replay.resolved = row.boolean(10);
    replay.result.status = static_cast<int>(row.integer(4));
    replay.result.headers = row.bytes(5);
    replay.result.body = row.bytes(6);
    replay.result.body_kept = static_cast<BodyKept>(row.integer(14));
    replay.result.effect = row.boolean(11) ? Effect::known : Effect::unknown;
    replay.result.representation_version = static_cast<int>(row.integer(9));
    replay.result.resource_id = row.optional_bytes(7);
    return replay;
  }
  if (decision == "mismatch") return claimed::Mismatch{};
  if (decision == "other_profile")
    return claimed::OtherProfile{read_digest(row.bytes(12), true).value_or(Digest{})};
  if (decision == "in_progress") {
    const Duration retry_after = row.interval(8);
    if (retry_after == Duration::zero()) return claimed::Outdated{};
    return claimed::InProgress{retry_after};
  }
  if (decision == "uncertain") return claimed::Uncertain{};
  if (decision == "gone") return claimed::Gone{};
  return failure(ErrorCode::incompatible,
                 "postgres session: the schema answers with a decision that this version does not "
                 "know; use the einmal that migrated it");
}

Result<void> PostgresSession::check_connection() const {
  if (PQstatus(connection_) != CONNECTION_OK)
    return tl::unexpected(connection_error(connection_, "postgres session: no connection"));
  if (PQpipelineStatus(connection_) != PQ_PIPELINE_OFF || PQisnonblocking(connection_))
    return failure(ErrorCode::invalid,
                   "postgres session: the connection must be blocking and not in pipeline mode");
  if (PQtransactionStatus(connection_) != PQTRANS_IDLE)
    return failure(ErrorCode::invalid,
                   "postgres session: the connection has a transaction of its own open");
  if (!notes_of(connection_))
    return failure(ErrorCode::unavailable, "postgres session: out of memory");
  return {};
}

Result<Claimed> PostgresSession::begin(const TransactionClaim& claim) {
  if (auto usable = check_connection(); !usable) return pass_on(usable);
  notes_of(connection_)->conflict = false;
  claim_ = claim;
  owner_ = OwnerToken::draw(random_);
  Sent sent =
      send_together({plain("begin"), claim_statement(claim.wait > Duration::zero(), claim.wait),
                     plain("savepoint einmal_handler")});
  if (sent.error) {
    roll_back();
    return tl::unexpected(*sent.error);
  }
  auto claimed = claimed_of(Row(sent.results[1].get(), 0));
  if (!claimed) {
    roll_back();
    return claimed;
  }
  if (const auto* execute = std::get_if<claimed::Execute>(&*claimed)) {
    generation_ = execute->generation;
    operation_id_ = execute->operation_id;
  }
  return claimed;
}

Statement PostgresSession::claim_statement(bool wait, Duration longest) const {
  Statement statement{"einmal_session_claim", claim_sql, {}};
  const Policies& policies = claim_->policies;
  const Scope& scope = claim_->scope;
  Parameters& parameters = statement.parameters;
  parameters.text(scope.caller()).text(scope.operation()).text(scope.key());
  parameters.bytes(digest_bytes(claim_->fingerprint.digest)).interval(policies.retention);
  parameters.text(wait ? "wait" : "reject").interval(longest).text(scope.name_space());
  parameters.uuid(owner_.bytes()).bytes(profile_bytes(claim_->fingerprint.profile));
  parameters.text(policies.after_expiry == AfterExpiry::refuse ? "refuse" : "new");
  parameters.interval(policies.tombstone);
  return statement;
}

Statement PostgresSession::settle_statement(event::Final outcome,
                                            const StoredResult& result) const {
  Statement statement{"einmal_session_settle", settle_sql, {}};
  const Scope& scope = claim_->scope;
  Parameters& parameters = statement.parameters;
  parameters.boolean(outcome == event::Final::completed);
  parameters.text(scope.caller()).text(scope.operation()).text(scope.key());
  parameters.int8(static_cast<std::int64_t>(number(generation_))).uuid(owner_.bytes());
  parameters.int4(result.status);
  result.body_kept == BodyKept::kept ? parameters.bytes(result.body) : parameters.null(Type::bytes);
  parameters.bytes(result.headers);
  result.resource_id ? parameters.text(*result.resource_id) : parameters.null(Type::text);
  parameters.text(scope.name_space()).int4(result.representation_version);
  return statement;
}

Committed PostgresSession::commit(event::Final outcome, const StoredResult& result,
                                  bool keep_effect) {
  tidy();
  std::vector<Statement> statements;
  if (!keep_effect) statements.push_back(plain("rollback to savepoint einmal_handler"));
  // Fails when the handler has ended the transaction, or a statement of it has failed.
  statements.push_back(plain("release savepoint einmal_handler"));
  statements.push_back(settle_statement(outcome, result));
  statements.push_back(plain("commit"));
  const std::size_t count = statements.size();
  commit_sent_ = Pace::now();
  Sent sent = send_together(statements);
  if (sent.error) return undone(std::move(sent));
  if (std::string_view(PQcmdStatus(sent.results[count - 1].get())) == "COMMIT")
    return committed::Durable{};
  roll_back();
  return committed::RolledBack{
      {ErrorCode::unavailable, "transaction: the server rolled back at COMMIT"}};
}

/// What the error of a settlement means for the transaction.
Committed PostgresSession::undone(Sent sent) {
  if (sent.sqlstate.empty()) return committed::InDoubt{*sent.error};
  roll_back();
  if (had_conflict())
    return committed::Conflict{
        {ErrorCode::unavailable,
         "transaction: undone, because it conflicted with another one; run it again"}};
  // No such savepoint; not in a transaction.
  if (sent.sqlstate == "3B001" || sent.sqlstate == "25P01" || sent.sqlstate == "EI001")
    return committed::RolledBack{{ErrorCode::invalid,
                                  "transaction: the handler ended the transaction itself; it must "
                                  "not begin, commit or roll back"}};
  if (sent.sqlstate == "25P02")
    return committed::RolledBack{
        {ErrorCode::invalid,
         "transaction: a statement of the handler had failed, so nothing could be committed; use a "
         "savepoint around what may fail, or return Failed"}};
  return committed::RolledBack{*sent.error};
}

void PostgresSession::roll_back() noexcept {
  if (PQtransactionStatus(connection_) == PQTRANS_ACTIVE ||
      PQpipelineStatus(connection_) != PQ_PIPELINE_OFF)
    tidy();
  const auto status = PQtransactionStatus(connection_);
  if (status != PQTRANS_INTRANS && status != PQTRANS_INERROR) return;
  const ResultHandle result(PQexec(connection_, "rollback"));
}

void PostgresSession::pause(int attempt) {
  // 1, 2, 4 ... 256 ms, any part of it: those that met should not meet again.
  const std::uint64_t most = std::uint64_t{1000} << std::min(attempt - 1, 8);
  std::this_thread::sleep_for(std::chrono::microseconds(random_.below(most)));
}

// --- many statements, one round trip

Sent PostgresSession::send_together(const std::vector<Statement>& statements) {
  std::vector<Owed> owed;
  bool sent = PQenterPipelineMode(connection_) == 1;
  for (const Statement& statement : statements) sent = sent && send(statement, owed);
  sent = sent && PQpipelineSync(connection_) == 1;
  if (!sent) {
    Sent failed;
    failed.error = connection_error(connection_, "postgres session");
    return failed;
  }
  Sent received = receive(owed);
  PQexitPipelineMode(connection_);
  return received;
}

bool PostgresSession::send(const Statement& statement, std::vector<Owed>& owed) {
  const Parameters& parameters = statement.parameters;
  std::vector<const char*> values;
  std::vector<int> lengths;
  const std::vector<int> formats(parameters.values().size(), 1);
  for (const Value& value : parameters.values()) {
    values.push_back(value ? value->data() : nullptr);
    lengths.push_back(value ? static_cast<int>(value->size()) : 0);
  }
  const bool prepared = statement.name && options_.prepare;
  if (prepared && notes_of(connection_)->prepared.insert(statement.name).second) {
    owed.push_back({statement.name});
    if (PQsendPrepare(connection_, statement.name, statement.sql, parameters.count(),
                      parameters.types().data()) != 1)
      return false;
  }
  owed.push_back({});
  if (prepared)
    return PQsendQueryPrepared(connection_, statement.name, parameters.count(), values.data(),
                               lengths.data(), formats.data(), 1) == 1;
  return PQsendQueryParams(connection_, statement.sql, parameters.count(),
                           parameters.types().data(), values.data(), lengths.data(), formats.data(),
                           1) == 1;
}

/// Reads until the sync point. A session that the server ended counts as a lost connection,
/// whatever it said before: it may have been committing.
Sent PostgresSession::receive(const std::vector<Owed>& owed) {
  Sent received;
  for (std::size_t at = 0;;) {
    ResultHandle result(PQgetResult(connection_));
    if (!result && PQstatus(connection_) == CONNECTION_OK) continue;  // between two statements
    if (!result) {
      received = {};
      received.error = connection_error(connection_, "postgres session");
      return received;
    }
    const auto status = PQresultStatus(result.get());
    if (status == PGRES_PIPELINE_SYNC) return received;
    const bool failed = status == PGRES_FATAL_ERROR || status == PGRES_PIPELINE_ABORTED;
    const char* preparing = at < owed.size() ? owed[at].preparing : nullptr;
    if (failed && preparing) notes_of(connection_)->prepared.erase(preparing);
    if (failed && !received.error) {
      received.error = error_of(result.get(), "postgres session");
      received.sqlstate = sqlstate_of(result.get());
    } else if (!failed && !preparing) {
      received.results.push_back(std::move(result));
    }
    ++at;
  }
}

/// Takes the connection back from a handler that left results unread, a COPY open, or the
/// connection in another mode.
void PostgresSession::tidy() {
  PQsetnonblocking(connection_, 0);
  const bool pipelined = PQpipelineStatus(connection_) != PQ_PIPELINE_OFF;
  if (pipelined) PQpipelineSync(connection_);
  for (bool synced = !pipelined; PQstatus(connection_) == CONNECTION_OK;) {
    const ResultHandle result(PQgetResult(connection_));
    if (!result && synced) break;
    const auto status = PQresultStatus(result.get());
    if (status == PGRES_PIPELINE_SYNC) synced = true;
    if (status == PGRES_COPY_IN) PQputCopyEnd(connection_, "the handler left the COPY open");
    char* line = nullptr;
    while (status == PGRES_COPY_OUT && PQgetCopyData(connection_, &line, 0) > 0) PQfreemem(line);
  }
  if (pipelined) PQexitPipelineMode(connection_);
}

// --- a commit in doubt

Result<bool> PostgresSession::became_durable() {
  const auto end = Pace::now() + options_.read_back;
  Error last{ErrorCode::unavailable, "postgres session: no connection"};
  for (auto pause = std::chrono::milliseconds(20); Pace::now() < end;
       pause = std::min(2 * pause, std::chrono::milliseconds(500))) {
    if (PQstatus(connection_) != CONNECTION_OK) PQreset(connection_);
    if (PQstatus(connection_) == CONNECTION_OK) {
      auto seen = look_again();
      if (seen) return seen;
      last = seen.error();
    } else {
      last = connection_error(connection_, "postgres session");
    }
    std::this_thread::sleep_for(pause);
  }
  return tl::unexpected(last);
}

/// Claims as the same owner in a transaction that is rolled back: if the key is free, our
/// transaction is not there; if it replays our operation, it is. As long as the old transaction
/// holds the key, nobody knows.
Result<bool> PostgresSession::look_again() {
  Sent sent = send_together({plain("begin isolation level read committed"),
                             claim_statement(true, std::chrono::seconds(1)), plain("rollback")});
  if (sent.error) {
    roll_back();
    return tl::unexpected(*sent.error);
  }
  auto claimed = claimed_of(Row(sent.results[1].get(), 0));
  if (!claimed) return pass_on(claimed);
  if (const auto* replay = std::get_if<claimed::Replay>(&*claimed))
    return replay->operation_id == operation_id_;
  const bool may_have_expired = Pace::now() - commit_sent_ >= claim_->policies.retention;
  if (std::holds_alternative<claimed::InProgress>(*claimed) || may_have_expired)
    return failure(ErrorCode::in_doubt, "postgres session: another transaction holds the key");
  return false;
}

}  // namespace

std::unique_ptr<Session> postgres_session(pg_conn* connection, Random& random,
                                          PostgresSessionOptions options) {
  return std::make_unique<PostgresSession>(connection, random, options);
}

}  // namespace einmal
