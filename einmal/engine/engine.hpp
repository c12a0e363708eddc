#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/engine/observer.hpp"
#include "einmal/engine/reconciler.hpp"
#include "einmal/engine/scheduler.hpp"
#include "einmal/store/store.hpp"

namespace einmal {

namespace detail {
class Desk;
class Reconciliation;
class Upkeep;
}  // namespace detail

/// What to answer to a duplicate while the original runs.
enum class InFlight : std::uint8_t { reject, wait, operation };

/// Computes a request's digest under the current profile, and under an older one the store names.
/// Called on the engine's thread.
class FingerprintSource {
 public:
  virtual ~FingerprintSource() = default;
  virtual std::shared_ptr<const Profile> profile() const = 0;
  virtual Fingerprint fingerprint() const = 0;
  /// Nothing: this build does not know that profile.
  virtual std::optional<Digest> digest_under(const Profile& profile) const = 0;
};

struct BeginRequest {
  Scope scope;
  Policies policies;
  InFlight in_flight = InFlight::reject;
  Duration wait{};  ///< With InFlight::wait: at most this long.
  Duration store_grace =
      std::chrono::seconds(5);  ///< How long a result is retried before the caller is told.
  std::shared_ptr<const FingerprintSource> fingerprint;
};

struct EngineLimits {
  std::size_t waiters = 1024;
  std::size_t waiters_per_key = 16;
  std::size_t waiters_per_caller = 0;    ///< Of one caller, over all its keys. 0: no quota.
  std::size_t background_writes = 1024;  ///< Unrecorded results and claims in doubt kept for retry.
  Duration store_deadline =
      std::chrono::seconds(5);  ///< A claim not answered by then is in doubt: 503.
  /// The late forward: the first byte goes out only while less than lease - margin has passed since
  /// the claim or the last confirmed renew was *sent*. A quarter of the lease, at most this.
  Duration margin = std::chrono::seconds(5);
  std::uint64_t live_per_caller = 1'000'000;   ///< 0: no quota.
  std::uint64_t uncertain_per_caller = 1'000;  ///< 0: no quota.
};

/// A record as it stood when it decided; shared by everybody who is answered from it.
using RecordPtr = std::shared_ptr<const Record>;

class Execution;

/// How a `begin` is answered. Records are never null unless said.
namespace begun {
struct Execute {
  std::unique_ptr<Execution> execution;
};  ///< Yours to run, once.
struct Replay {
  RecordPtr record;       ///< Its result is set.
  bool resolved = false;  ///< An operator or reconciler gave the result.
};
struct Mismatch {
  OperationId operation_id;
};
struct InProgress {
  OperationId operation_id;
  /// The age of the attempt, within 1..10 s and the lease left, +-25 %.
  Duration retry_after{};
};
struct Uncertain {
  RecordPtr record;
};
struct Gone {
  RecordPtr record;
};
struct Released {
  Duration retry_after{};
};  ///< The attempt waited for ended without effect; the same key may come again.
struct TooManyWaiters {
  Duration retry_after{};
};
struct Incomparable {};  ///< Recorded under a profile this build cannot compute.
struct OverQuota {
  Duration retry_after{};
};
struct Draining {};
/// The store failed or is slow; nothing was sent downstream. `error.code` is in_doubt when the
/// claim may have been written (the engine releases it when the store answers); any other code:
/// it certainly was not.
struct Unavailable {
  Error error;
};
}  // namespace begun

using Begun =
    std::variant<begun::Execute, begun::Replay, begun::Mismatch, begun::InProgress,
                 begun::Uncertain, begun::Gone, begun::Released, begun::TooManyWaiters,
                 begun::Incomparable, begun::OverQuota, begun::Draining, begun::Unavailable>;

/// How the end of an execution is answered.
namespace finished {
/// Durable as asked. Null: released, the key is free.
struct Recorded {
  RecordPtr record;
};
/// A release, or a status that proves nothing, after a takeover.
struct BecameUncertain {
  RecordPtr record;
};
/// Answer from the record as it stands (`as_duplicate`); null: it is gone. What this owner did is
/// kept in the audit as a late result.
struct Lost {
  RecordPtr record;
  Condition condition = Condition::absent;  ///< How a claim would see it.
};
/// store_grace is over; writing goes on in the background, nothing runs again.
struct Unrecorded {
  /// No second forward can exist (attempts = 1 and the record does not promise takeover): the
  /// answer may be passed on as `unrecorded`. Otherwise the outcome is unknown to the client.
  bool may_answer = false;
};
}  // namespace finished

using Finished = std::variant<finished::Recorded, finished::BecameUncertain, finished::Lost,
                              finished::Unrecorded>;

/// An owned attempt. Heartbeats at a third of the lease until it is finished (none without a
/// lease). Engine's thread only, its destruction too. Destroying it unfinished marks the record
/// uncertain: an effect may have happened. Destroying it while a `done` is outstanding drops that
/// `done`; the write goes on. After the engine is gone every function does nothing and no `done`
/// is called.
class Execution {
 public:
  virtual ~Execution() = default;

  virtual const Scope& scope() const = 0;
  virtual const Record& record() const = 0;  ///< As claimed: generation, operation id, attempts.

  /// Whether the first byte may go downstream now (boot clock, lease - margin, not known to be
  /// lost). False: `reconfirm` first.
  virtual bool may_send() const = 0;
  /// Renews; `done(true)` only after the store confirmed it and `may_send()` holds. false: lost, or
  /// the store did not confirm within store_deadline; send nothing. One at a time.
  virtual void reconfirm(std::function<void(bool)> done) = 0;
  /// Calls `handler` once if a heartbeat learns that ownership is lost. Only lost stops a running
  /// handler.
  virtual void on_lost(std::function<void()> handler) = 0;

  /// Exactly one of these, once. `done` is called when the outcome is durable, lost, or store_grace
  /// is over; never inside the call. One exception: after `mark_uncertain` was answered, `settle`
  /// or `release` may follow once, when the outcome became known after all (a late completion).
  virtual void settle(event::Final outcome, StoredResult result, bool declared,
                      std::function<void(Finished)> done) = 0;
  virtual void release(std::function<void(Finished)> done) = 0;
  virtual void mark_uncertain(UncertainCause cause, std::optional<StoredResult> seen,
                              std::function<void(Finished)> done) = 0;
};

/// What an engine has in hand now.
struct EngineLoad {
  std::size_t claims = 0;      ///< Begun, neither answered nor waiting.
  std::size_t waiters = 0;     ///< In the wait queue.
  std::size_t executions = 0;  ///< Owned and not finished.
  std::size_t background = 0;  ///< Unrecorded writes and claims in doubt.
};

/// Begins and finishes operations on a store: in-flight policy, waiters, heartbeat, claims in
/// doubt, late results, quotas, sweep. Policy is here, mechanism in the store. Lives on its
/// scheduler's thread, construction and destruction included; not thread-safe otherwise.
class Engine {
 public:
  /// Everything must outlive the engine.
  Engine(Store& store, Scheduler& scheduler, const Clock& clock, Random& random, Observer& observer,
         EngineLimits limits);
  /// Tells the store nothing: what is open then is left as a crash would leave it. `stop` first.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Names one `begin` until it is answered.
  enum class Ticket : std::uint64_t {};

  /// Claims the operation or says what stands in the way. `done` is called exactly once, never
  /// inside this call, unless the ticket is dropped first.
  Ticket begin(BeginRequest request, std::function<void(Begun)> done);
  /// The client went away before it was answered: frees a waiter's place, and releases a claim that
  /// is still on its way. No effect on one that was answered, so none on one that executes.
  void drop(Ticket ticket);
  /// Whether this `begin` has a place in the wait queue now.
  bool is_waiting(Ticket ticket) const;

  /// Whether a claim on `scope` that would create a record is over its caller's quota; for asking
  /// before the body is read. `begin` asks again by itself. `done` is never called inside this
  /// call; nothing: not over.
  void check_quota(const Scope& scope, std::function<void(std::optional<begun::OverQuota>)> done);

  /// Any other request to the store, answered on the engine's thread, never inside this call.
  void ask(Request request, std::function<void(Result<Answer>)> done);

  EngineLoad load() const;

  /// Removes expired records and turns overdue ones uncertain, in bounded batches, from now on.
  void start_sweeping(Duration interval);
  /// Reads the store's statistics for `Observer::measured`, from now on.
  void start_measuring(Duration interval);

  /// Has `reconciler`, which must outlive the engine, ask about the uncertain records of this
  /// namespace from now on, and settles them by what it finds out. `interval`: between two looks.
  void start_reconciling(Reconciler& reconciler, std::string name_space, Duration interval);

  /// New requests get `Draining`, waiters `InProgress`. `idle` runs when no claim, no execution and
  /// no background write is left. Sweeping, measuring and reconciling end.
  void drain(std::function<void()> idle);
  /// The drain is over: every open execution is marked uncertain "owner stopped" (under takeover
  /// its lease is ended), unrecorded writes are tried once more, then `done`; at the latest after
  /// store_deadline.
  void stop(std::function<void()> done);

 private:
  std::unique_ptr<detail::Desk> desk_;
  std::unique_ptr<detail::Upkeep> upkeep_;
  std::unique_ptr<detail::Reconciliation> reconciliation_;
};

/// How the request that held `own` is answered after it lost the key: as any duplicate would be.
/// `lost.record` is not null.
Begun as_duplicate(const finished::Lost& lost, const Record& own);

}  // namespace einmal
