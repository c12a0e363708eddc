#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "einmal/base/error.hpp"
#include "einmal/core/record.hpp"
#include "einmal/core/scope.hpp"
#include "einmal/store/store.hpp"

namespace einmal {

/// Named points on the road of one execution, in order. Tests kill, stop or stall a process at each
/// of them; `all_points` is the list they walk, so that a new point without a test fails.
enum class Point : std::uint8_t {
  claim_submitted,    ///< The claim was handed to the store; not durable yet.
  claim_durable,      ///< This process owns the key.
  before_first_byte,  ///< The late-forward check passed; nothing was sent downstream.
  first_byte_sent,    ///< The kernel took the first byte of the request.
  request_sent,       ///< All of it.
  answer_started,     ///< The status line came.
  answer_complete,    ///< The whole answer is here; nothing is recorded.
  settle_submitted,   ///< The result was handed to the store; not durable yet.
  settle_durable,     ///< The result is durable; the client has seen nothing.
  before_answer,      ///< About to write to the client.
  answer_sent,        ///< The kernel took the whole answer.
};
inline constexpr std::array all_points{
    Point::claim_submitted, Point::claim_durable,    Point::before_first_byte,
    Point::first_byte_sent, Point::request_sent,     Point::answer_started,
    Point::answer_complete, Point::settle_submitted, Point::settle_durable,
    Point::before_answer,   Point::answer_sent};
std::string_view name(Point point);

/// How one `Engine::begin` ended. Each begin ends exactly once.
enum class BeginOutcome : std::uint8_t {
  execute,
  replay,
  mismatch,
  in_progress,
  uncertain,
  gone,
  released,
  too_many_waiters,
  incomparable,
  over_quota,
  draining,
  unavailable,
  dropped,  ///< The caller let go of its ticket; nobody was answered.
};
inline constexpr std::array all_begin_outcomes{
    BeginOutcome::execute,     BeginOutcome::replay,           BeginOutcome::mismatch,
    BeginOutcome::in_progress, BeginOutcome::uncertain,        BeginOutcome::gone,
    BeginOutcome::released,    BeginOutcome::too_many_waiters, BeginOutcome::incomparable,
    BeginOutcome::over_quota,  BeginOutcome::draining,         BeginOutcome::unavailable,
    BeginOutcome::dropped};
std::string_view name(BeginOutcome outcome);

struct BeginReport {
  const Scope& scope;
  BeginOutcome outcome;
  const Record* record = nullptr;  ///< The record that decided, where there is one.
  Duration took{};                 ///< Since `begin`, by the boot clock.
  std::optional<Duration> waited;  ///< In the wait queue, where it waited.
  bool takeover = false;           ///< With execute: a generation before this one may have acted.
  bool resolved = false;           ///< With replay: an operator or reconciler gave the result.
  bool entered = false;            ///< With uncertain: by this request, which found the lease over.
};

/// What the owner of an attempt asked the store for at its end.
enum class Finish : std::uint8_t {
  complete,
  fail,
  release,
  mark_uncertain,
  abandon,  ///< The process stops and gives the lease back.
};
inline constexpr std::array all_finishes{Finish::complete, Finish::fail, Finish::release,
                                         Finish::mark_uncertain, Finish::abandon};
std::string_view name(Finish finish);

enum class FinishOutcome : std::uint8_t {
  recorded,          ///< As asked, durable.
  became_uncertain,  ///< A release, or a status that proves nothing, after a takeover.
  lost,              ///< Another generation owns the key, or somebody settled it.
  unrecorded,        ///< Not durable yet: writing goes on; one more report follows.
  given_up,          ///< Not durable, and nobody in this process tries any more.
};
inline constexpr std::array all_finish_outcomes{
    FinishOutcome::recorded, FinishOutcome::became_uncertain, FinishOutcome::lost,
    FinishOutcome::unrecorded, FinishOutcome::given_up};
std::string_view name(FinishOutcome outcome);

struct FinishReport {
  const Scope& scope;
  const Record& claimed;  ///< As it was claimed: generation, operation id, attempts, policies.
  Finish asked;
  FinishOutcome outcome;
  BodyKept body_kept = BodyKept::kept;          ///< With complete and fail.
  UncertainCause cause = UncertainCause::none;  ///< With mark_uncertain.
  Duration took{};                              ///< Since it was asked for.
  bool late = false;                            ///< It follows an earlier end of this execution.
  bool was_uncertain = false;  ///< With late: that end had left the record uncertain.
  bool background = false;     ///< It was reported `unrecorded` before.
};

/// How a renewal of a lease was answered. `failed` is the store's failure and is retried.
enum class Renewal : std::uint8_t { confirmed, lost, failed };
inline constexpr std::array all_renewals{Renewal::confirmed, Renewal::lost, Renewal::failed};
std::string_view name(Renewal renewal);

/// What one question about an uncertain record led to.
enum class Reconciled : std::uint8_t {
  completed,
  failed,
  freed,
  unknown,  ///< It settled nothing; another follows.
  changed,  ///< Somebody else had settled the record by then.
};
inline constexpr std::array all_reconciled{Reconciled::completed, Reconciled::failed,
                                           Reconciled::freed, Reconciled::unknown,
                                           Reconciled::changed};
std::string_view name(Reconciled reconciled);

/// Kinds of store calls, for latency and failures.
enum class StoreCall : std::uint8_t { claim, renew, finish, read, maintain };
inline constexpr std::array all_store_calls{StoreCall::claim, StoreCall::renew, StoreCall::finish,
                                            StoreCall::read, StoreCall::maintain};
std::string_view name(StoreCall call);

/// What a person must look at.
enum class Alarm : std::uint8_t {
  generation_regressed,  ///< The store lost commits: this process claims no more. Restart it after
                         ///< `einmal migrate --after-restore`.
  late_contradiction,    ///< A late result says otherwise than what was settled.
  background_full,       ///< A write was given up because too many wait for the store.
  expiry_paused,  ///< The wall clock jumped ahead: nothing expires until it agrees or an operator
                  ///< accepts.
  reconciliation_given_up,  ///< Every question allowed was asked: a person settles it.
};
inline constexpr std::array all_alarms{Alarm::generation_regressed, Alarm::late_contradiction,
                                       Alarm::background_full, Alarm::expiry_paused,
                                       Alarm::reconciliation_given_up};
std::string_view name(Alarm alarm);

/// What happened, for metrics and logs. Called on the engine's thread; must not block or throw.
/// Every function has an empty default, so an observer overrides what it needs.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void reached(Point, const Scope&, Generation) {}

  virtual void begun(const BeginReport&) {}
  /// A duplicate started to wait; its `begun` tells how long it did.
  virtual void wait_started(const Scope&) {}
  virtual void finished(const FinishReport&) {}
  /// A heartbeat or reconfirmation was answered.
  virtual void renewed(const Scope&, Generation, Renewal) {}
  /// An owner learned that the key is no longer its own: once for each execution.
  virtual void ownership_lost(const Scope&, Generation) {}
  /// A result came too late and was kept in the audit, not published.
  virtual void late_result(const Scope&, Generation, bool /*contradicts*/) {}
  /// A reconciler's question about an uncertain record was answered, and that is durable.
  virtual void reconciled(const Scope&, Generation, Reconciled) {}
  /// A call to the store was answered; nothing: without error.
  virtual void store_answered(StoreCall, Duration /*took*/, std::optional<ErrorCode>) {}
  /// Overdue records that upkeep or a waiter turned uncertain.
  virtual void overdue(std::size_t /*became_uncertain*/) {}
  /// A sweep batch removed records and stripped tombstones of their bodies.
  virtual void swept(std::size_t /*removed*/, std::size_t /*stripped*/) {}
  /// The periodic look at the store, see `Engine::start_measuring`.
  virtual void measured(const answer::Stats&) {}
  /// `detail` is for a person; it contains no key, caller or body.
  virtual void alarm(Alarm, std::string_view /*detail*/) {}
};

/// Observes nothing.
Observer& no_observer();

}  // namespace einmal
