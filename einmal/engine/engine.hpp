#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <variant>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/engine/observer.hpp"
#include "einmal/engine/scheduler.hpp"
#include "einmal/store/store.hpp"

namespace einmal {

/// What to answer to a duplicate while the original runs.
enum class InFlight : std::uint8_t { reject, wait, operation };

/// Computes a request's digest under the current profile, and under an older one the store names.
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
  std::size_t background_writes = 1024;  ///< Unrecorded results and claims in doubt kept for retry.
  Duration store_deadline =
      std::chrono::seconds(5);  ///< A claim not answered by then is in doubt: 503.
  /// The late forward: the first byte goes out only while less than lease - margin has passed since
  /// the claim or the last confirmed renew was *sent*. A quarter of the lease, at most this.
  Duration margin = std::chrono::seconds(5);
  std::uint64_t live_per_caller = 1'000'000;
  std::uint64_t uncertain_per_caller = 1'000;
};

class Execution;

namespace begun {
struct Execute {
  std::unique_ptr<Execution> execution;
};  ///< Yours to run, once.
struct Replay {
  Record record;
  bool resolved = false;
};  ///< resolved: an operator or reconciler gave the result.
struct Mismatch {
  OperationId operation_id;
};
struct InProgress {
  OperationId operation_id;
  Duration retry_after{};
};
struct Uncertain {
  Record record;
};
struct Gone {
  Record record;
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
struct Unavailable {
  Error error;
};  ///< The store failed or is slow; nothing was sent downstream.
}  // namespace begun

using Begun =
    std::variant<begun::Execute, begun::Replay, begun::Mismatch, begun::InProgress,
                 begun::Uncertain, begun::Gone, begun::Released, begun::TooManyWaiters,
                 begun::Incomparable, begun::OverQuota, begun::Draining, begun::Unavailable>;

namespace finished {
struct Recorded {
  std::optional<Record> record;
};  ///< Durable. Nothing: released, the key is free.
struct BecameUncertain {
  Record record;
};
struct Lost {
  std::optional<Record> record;
};  ///< Answer from the record as it stands; nothing: it is gone.
struct Unrecorded {
};  ///< store_grace is over; writing goes on in the background, nothing runs again.
}  // namespace finished

using Finished = std::variant<finished::Recorded, finished::BecameUncertain, finished::Lost,
                              finished::Unrecorded>;

/// An owned attempt. Heartbeats at a third of the lease until it is finished. Engine's thread only.
/// Destroying it unfinished marks the record uncertain: an effect may have happened.
class Execution {
 public:
  virtual ~Execution() = default;

  virtual const Scope& scope() const = 0;
  virtual const Record& record() const = 0;  ///< As claimed: generation, operation id, attempts.

  /// Whether the first byte may go downstream now (boot clock, lease - margin). False: `reconfirm`
  /// first.
  virtual bool may_send() const = 0;
  /// Renews; `done(true)` only after the store confirmed it. false: lost or store unavailable; send
  /// nothing.
  virtual void reconfirm(std::function<void(bool)> done) = 0;
  /// Calls `handler` once if a heartbeat learns that ownership is lost. Only lost stops a running
  /// handler.
  virtual void on_lost(std::function<void()> handler) = 0;

  /// Exactly one of these, once. `done` is called when the outcome is durable, lost, or store_grace
  /// is over.
  virtual void settle(event::Final outcome, StoredResult result, bool declared,
                      std::function<void(Finished)> done) = 0;
  virtual void release(std::function<void(Finished)> done) = 0;
  virtual void mark_uncertain(UncertainCause cause, std::optional<StoredResult> seen,
                              std::function<void(Finished)> done) = 0;
};

/// Begins and finishes operations on a store: in-flight policy, waiters, heartbeat, claims in
/// doubt, late results, sweep. Policy is here, mechanism in the store. Lives on its scheduler's
/// thread; not thread-safe otherwise.
class Engine {
 public:
  /// Everything must outlive the engine.
  Engine(Store& store, Scheduler& scheduler, const Clock& clock, Random& random, Observer& observer,
         EngineLimits limits);
  ~Engine();

  /// Names one `begin` while it waits.
  enum class Ticket : std::uint64_t {};

  /// Claims the operation or says what stands in the way. `done` is called exactly once, never
  /// inside this call, unless the ticket is dropped first.
  Ticket begin(BeginRequest request, std::function<void(Begun)> done);
  /// The client of a waiter went away: frees its place. No effect on one that already executes.
  void drop(Ticket ticket);

  /// Removes expired records and turns overdue ones uncertain, in bounded batches, from now on.
  void start_sweeping(Duration interval);

  /// New keyed requests get `Draining`, waiters `InProgress`. `idle` runs when no execution and no
  /// background write is left.
  void drain(std::function<void()> idle);
  /// The drain is over: every open execution is marked uncertain "owner stopped" (under takeover
  /// its lease is ended), unrecorded writes are tried once more, then `done`.
  void stop(std::function<void()> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace einmal
