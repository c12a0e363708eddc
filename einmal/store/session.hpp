#pragma once

#include <optional>
#include <variant>

#include "einmal/base/clock.hpp"
#include "einmal/base/error.hpp"
#include "einmal/core/decide.hpp"
#include "einmal/core/record.hpp"
#include "einmal/core/scope.hpp"

namespace einmal {

/// A claim that must be settled or undone in the transaction that makes it.
struct TransactionClaim {
  Scope scope;
  Fingerprint fingerprint;
  Policies policies;  ///< Without a lease.
  Duration wait{};    ///< For another transaction that holds the key; zero: reject at once.
};

/// What a claim inside a transaction is told.
namespace claimed {

/// The key is this transaction's. A savepoint stands behind the claim.
struct Execute {
  Generation generation{};
  OperationId operation_id;
};
struct Replay {
  State state = State::completed;  ///< completed or failed.
  OperationId operation_id;
  StoredResult result;
  bool resolved = false;  ///< Given by an operator or reconciler.
};
struct Mismatch {};
/// Recorded under another fingerprint profile: compute the digest under that one.
struct OtherProfile {
  Digest profile{};
};
struct InProgress {
  Duration retry_after{};
};
/// The record appeared or changed after this transaction's snapshot: begin another one.
struct Outdated {};
struct Uncertain {};
struct Gone {};

}  // namespace claimed

using Claimed =
    std::variant<claimed::Execute, claimed::Replay, claimed::Mismatch, claimed::OtherProfile,
                 claimed::InProgress, claimed::Outdated, claimed::Uncertain, claimed::Gone>;

/// How `Session::commit` ended.
namespace committed {

/// Confirmed: effect and record are durable together.
struct Durable {};
/// Rolled back because the database had to resolve a conflict between transactions; the same again
/// may succeed.
struct Conflict {
  Error error;
};
/// Rolled back: a statement of the handler had failed, the handler had ended the transaction
/// itself, or the database refused the commit. Nothing of it remains.
struct RolledBack {
  Error error;
};
/// The confirmation did not come.
struct InDoubt {
  Error error;
};

}  // namespace committed

using Committed = std::variant<committed::Durable, committed::Conflict, committed::RolledBack,
                               committed::InDoubt>;

/// One transaction at a time on a database connection that belongs to the caller, with the claim,
/// the caller's own statements and the outcome inside. A driver supplies the statements; what they
/// mean stands in run_in_transaction.hpp, which is the only one to call them. The thread of the
/// connection.
class Session {
 public:
  virtual ~Session() = default;

  /// Begins a transaction, claims in it and sets a savepoint. Unless the answer is Execute, the
  /// transaction may be open and has nothing in it. Errors: the transaction is rolled back.
  virtual Result<Claimed> begin(const TransactionClaim& claim) = 0;

  /// Settles the claim of `begin` and commits. `keep_effect` false: what the handler wrote is
  /// undone to the savepoint first. Whatever the answer, no transaction is open afterwards.
  virtual Committed commit(event::Final outcome, const StoredResult& result, bool keep_effect) = 0;

  /// Undoes everything, whether the transaction stands, failed or is gone.
  virtual void roll_back() noexcept = 0;

  /// Whether the database told a statement since `begin` that it had to resolve a conflict.
  virtual bool had_conflict() const = 0;

  /// Waits a little, by chance and longer after each attempt, before the transaction is run again.
  virtual void pause(int attempt) = 0;

  /// After InDoubt: reads (on a new connection, if need be) whether the transaction became durable.
  /// Errors: it cannot be told.
  virtual Result<bool> became_durable() = 0;
};

}  // namespace einmal
