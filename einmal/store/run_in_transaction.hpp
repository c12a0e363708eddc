#pragma once

#include <functional>
#include <variant>

#include "einmal/store/session.hpp"

/// The strongest promise: claim, effect and result commit together, so a local effect happens
/// exactly once.
///
///     auto ran = run_in_transaction(session, request, [&](const Attempt&) -> HandlerOutcome {
///       // the service's own statements, on the session's connection
///       return handled::Completed{result};
///     });
///
/// The handler works between a claim and a commit that it does not see:
///
///   returns Completed   its writes and the result commit together; repeats replay the result
///   returns Failed      its writes are undone, the refusal commits; repeats replay the refusal
///   returns Released    everything is undone, the key is free
///   throws              everything is undone, the key is free, the exception goes through
///
/// Instead of a body it may keep what names the resource, and rebuild the answer on replay:
///
///     result.body_kept = BodyKept::by_choice;        // in the handler
///     result.resource_id = order_id;
///     result.representation_version = 2;             // of the shape that `rebuild` has to make
///     request.rebuild = [&](const StoredResult& kept) { ... };
///
/// That saves the body's bytes a record, and is right only where the answer can be made again as it
/// was: from rows that nobody changes, or with a version kept beside them.
///
/// It may use savepoints of its own. It must not begin, commit or roll back: that is noticed, and
/// the answer is an error, never a success; with PostgreSQL and SQLite the key is then free.

namespace einmal {

/// What the handler says.
namespace handled {
struct Completed {
  StoredResult result;
};
struct Failed {
  StoredResult result;
};
struct Released {};
}  // namespace handled
using HandlerOutcome = std::variant<handled::Completed, handled::Failed, handled::Released>;

/// What the handler is told.
struct Attempt {
  const Scope& scope;
  Generation generation{};   ///< The fencing token.
  OperationId operation_id;  ///< Names the operation in what it writes elsewhere.
};

struct TransactionRequest {
  Scope scope;
  Fingerprint fingerprint;
  /// Must have no lease: the transaction itself is what an owner holds.
  Policies policies;
  /// How long a duplicate waits for a transaction that holds the key; zero: rejected at once.
  Duration wait{};
  /// Whether the handler may run again when the database undoes its transaction to resolve a
  /// conflict (PostgreSQL above READ COMMITTED): all its effects must be inside the transaction.
  /// Otherwise the conflict is the answer: `unavailable`.
  bool may_run_again = true;
  int attempts = 20;  ///< Transactions at most, with growing pauses between them.
  /// Makes the answer of a replay whose body was not kept (BodyKept::by_choice), from resource id
  /// and representation version. Runs after the transaction, without one, and may use the
  /// connection; what it throws goes through, and the record stays. Empty: replayed as kept.
  std::function<StoredResult(const StoredResult& kept)> rebuild;
};

/// What became of a request.
namespace ran {
/// Committed: this call ran the handler.
struct Executed {
  StoredResult result;
  bool failed = false;  ///< The handler said Failed.
  OperationId operation_id;
};
/// A call before this one did. `failed`: a refusal.
struct Replayed {
  StoredResult result;
  bool failed = false;
  bool resolved = false;  ///< Given by an operator or reconciler.
  OperationId operation_id;
};
/// The key was used with another request.
struct Mismatch {};
struct OtherProfile {
  Digest profile{};
};
/// Another transaction holds the key. Also for a duplicate with another body, while the record of
/// the first is not visible.
struct InProgress {
  Duration retry_after{};
};
struct Uncertain {};
/// Retention is over and the operation refuses old keys.
struct Gone {};
/// The handler said so: the key is free.
struct Released {};
}  // namespace ran
using Ran = std::variant<ran::Executed, ran::Replayed, ran::Mismatch, ran::OtherProfile,
                         ran::InProgress, ran::Uncertain, ran::Gone, ran::Released>;

using Handler = std::function<HandlerOutcome(const Attempt&)>;

/// Runs `handler` at most once per key, in one transaction with its claim and its outcome. Blocks.
/// The connection of `session` has no open transaction before and after.
///
/// Nothing is answered as success before the commit is confirmed; a confirmation that was lost is
/// resolved by reading back.
///
/// Errors: unavailable (nothing happened: back off and try again), in_doubt (it may have happened:
/// send the same key again), invalid (the request, or the handler ended the transaction itself or
/// ignored a statement that had failed: nothing happened), and those of the session.
Result<Ran> run_in_transaction(Session& session, const TransactionRequest& request,
                               const Handler& handler);

}  // namespace einmal
