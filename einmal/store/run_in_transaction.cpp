#include "einmal/store/run_in_transaction.hpp"

#include <algorithm>
#include <optional>

#include "einmal/core/check_limits.hpp"

namespace einmal {

namespace {

/// Undoes whatever is open when it is left, unless told that nothing is.
class Guard {
 public:
  explicit Guard(Session& session) : session_(session) {}
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() {
    if (armed_) session_.roll_back();
  }
  void disarm() { armed_ = false; }

 private:
  Session& session_;
  bool armed_ = true;
};

/// What one transaction led to: an answer, an error, or that another one may do better.
struct Again {
  Error error;
};
using Try = std::variant<Ran, Error, Again>;

/// The answer to a claim that does not execute.
struct AsAnswer {
  const TransactionRequest& request;

  Try operator()(const claimed::Execute&) const {
    return Error{ErrorCode::internal, "transaction: a claim that executes is no answer"};
  }
  Try operator()(const claimed::Replay& replay) const {
    const bool rebuilt = request.rebuild && replay.result.body_kept == BodyKept::by_choice;
    return Ran(ran::Replayed{rebuilt ? request.rebuild(replay.result) : replay.result,
                             replay.state == State::failed, replay.resolved, replay.operation_id});
  }
  Try operator()(const claimed::Mismatch&) const { return Ran(ran::Mismatch{}); }
  Try operator()(const claimed::OtherProfile& other) const {
    return Ran(ran::OtherProfile{other.profile});
  }
  Try operator()(const claimed::InProgress& there) const {
    return Ran(ran::InProgress{there.retry_after});
  }
  Try operator()(const claimed::Outdated&) const {
    return Again{{ErrorCode::unavailable, "transaction: it kept meeting newer ones; try again"}};
  }
  Try operator()(const claimed::Uncertain&) const { return Ran(ran::Uncertain{}); }
  Try operator()(const claimed::Gone&) const { return Ran(ran::Gone{}); }
};

Try ended(Session& session, const TransactionRequest& request, const Committed& end,
          ran::Executed executed) {
  if (std::holds_alternative<committed::Durable>(end)) return Ran(std::move(executed));
  if (const auto* conflict = std::get_if<committed::Conflict>(&end))
    return request.may_run_again ? Try(Again{conflict->error}) : Try(conflict->error);
  if (const auto* undone = std::get_if<committed::RolledBack>(&end)) return undone->error;
  const Error& doubt = std::get<committed::InDoubt>(end).error;
  const Result<bool> durable = session.became_durable();
  if (!durable) return Error{ErrorCode::in_doubt, doubt.message + "; " + durable.error().message};
  if (*durable) return Ran(std::move(executed));
  return Error{ErrorCode::unavailable, doubt.message + "; the transaction was rolled back"};
}

/// The handler, inside its transaction. Nothing: it threw because of a conflict, and may run again.
std::optional<HandlerOutcome> handle(Session& session, const TransactionRequest& request,
                                     const claimed::Execute& execute, const Handler& handler,
                                     bool last) {
  try {
    return handler(Attempt{request.scope, execute.generation, execute.operation_id});
  } catch (...) {
    if (request.may_run_again && !last && session.had_conflict()) return std::nullopt;
    throw;
  }
}

Try try_once(Session& session, const TransactionRequest& request, const Handler& handler,
             bool last) {
  Guard guard(session);
  auto begun = session.begin({request.scope, request.fingerprint, request.policies, request.wait});
  if (!begun) {
    return request.may_run_again && session.had_conflict() ? Try(Again{begun.error()})
                                                           : Try(begun.error());
  }
  const auto* execute = std::get_if<claimed::Execute>(&*begun);
  if (!execute) {
    session.roll_back();
    guard.disarm();
    return std::visit(AsAnswer{request}, *begun);
  }
  const auto outcome = handle(session, request, *execute, handler, last);
  if (!outcome) return Again{{ErrorCode::unavailable, "transaction: undone by a conflict"}};
  if (std::holds_alternative<handled::Released>(*outcome)) return Ran(ran::Released{});

  const auto* failed = std::get_if<handled::Failed>(&*outcome);
  const StoredResult& result =
      failed ? failed->result : std::get<handled::Completed>(*outcome).result;
  const auto final = failed ? event::Final::failed : event::Final::completed;
  if (auto checked = check_limits(result); !checked) return checked.error();
  const Committed end = session.commit(final, result, failed == nullptr);
  guard.disarm();
  return ended(session, request, end, {result, failed != nullptr, execute->operation_id});
}

}  // namespace

Result<Ran> run_in_transaction(Session& session, const TransactionRequest& request,
                               const Handler& handler) {
  if (request.policies.lease)
    return failure(ErrorCode::invalid, "transaction: a claim inside a transaction has no lease");
  if (auto limits = check_limits(request.policies); !limits) return pass_on(limits);
  std::optional<Error> last_error;
  const int attempts = std::max(1, request.attempts);
  for (int attempt = 1; attempt <= attempts; ++attempt) {
    if (attempt > 1) session.pause(attempt - 1);
    Try tried = try_once(session, request, handler, attempt == attempts);
    if (auto* answer = std::get_if<Ran>(&tried)) return std::move(*answer);
    if (const auto* error = std::get_if<Error>(&tried)) return tl::unexpected(*error);
    last_error = std::get<Again>(tried).error;
  }
  return failure(ErrorCode::unavailable, last_error->message);
}

}  // namespace einmal
