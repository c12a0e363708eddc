#pragma once

#include <optional>
#include <string>
#include <variant>

#include "einmal/core/record.hpp"

/// The state machine as one pure function.
///
///                 claim                     complete
///    (absent) ------------> processing ----------------> completed   -- replays its result
///        ^                   |  |  |  \    fail
///        |      release      |  |  |   `---------------> failed      -- replays its result
///        +-------------------+  |  |
///        |                      |  | lease over, takeover promised on both sides: next generation,
///        |                      |  `--> processing (attempts + 1)             new owner
///        |                      | outcome seen to be unknown, or lease over and `uncertain`
///        promised |                      v
///     freed <-- resolve ---- uncertain ---- resolve / late completion by its own generation -->
///     completed | failed
///
/// completed and failed are final. uncertain is never left by the passage of time. After retention
/// a final record is expired at once, swept or not: claimed anew, or a tombstone that answers
/// "gone". processing and uncertain never expire.

namespace einmal {

/// Events. Whatever is fresh in them (owner, operation id, generation) was drawn outside.
namespace event {

struct Claim {
  Fingerprint fingerprint;
  Policies policies;
  OwnerToken owner;
  OperationId operation_id;  ///< Used if a record is created.
  Generation
      generation{};  ///< The next of the store's counter; consumed only if the decision uses it.
};
struct Renew {
  Generation generation{};
  OwnerToken owner;
};
enum class Final : std::uint8_t { completed, failed };
struct Settle {  ///< complete, fail
  Final outcome = Final::completed;
  Generation generation{};
  OwnerToken owner;
  StoredResult result;
  /// The upstream or handler itself said completed or failed (Einmal-Outcome, a handler's return),
  /// so that the status alone is not asked to prove anything after a takeover.
  bool declared = false;
};
struct Release {
  Generation generation{};
  OwnerToken owner;
};
struct MarkUncertain {
  Generation generation{};
  OwnerToken owner;
  UncertainCause cause = UncertainCause::outcome_unknown;
  std::optional<StoredResult> seen;  ///< What the upstream sent, if a status came.
};
/// An owner that stops gives its lease back: under `takeover` the lease is ended, otherwise
/// uncertain.
struct Abandon {
  Generation generation{};
  OwnerToken owner;
};
struct Overdue {};  ///< Any process looked: lease over and `uncertain` promised -> uncertain.
struct Doubt {
  Generation generation{};
};
enum class Resolution : std::uint8_t { completed, failed, freed };
struct Resolve {
  Generation generation{};  ///< The one that was looked at.
  Resolution to = Resolution::completed;
  std::optional<StoredResult> result;  ///< Required for completed and failed.
  SettledBy by = SettledBy::operator_;
  bool force = false;  ///< Also from processing.
};
struct Forget {
  Generation generation{};
};
struct Sweep {
};  ///< Removes what is expired and past its tombstone; strips the body of a tombstone.

}  // namespace event

using Event = std::variant<event::Claim, event::Renew, event::Settle, event::Release,
                           event::MarkUncertain, event::Abandon, event::Overdue, event::Doubt,
                           event::Resolve, event::Forget, event::Sweep>;

/// Decisions: what the store answers. Each that carries a record carries it as it stands after the
/// step.
namespace decision {

struct Execute {  ///< The claimant owns the operation; carries generation, operation id, attempts.
  Record record;
  bool takeover = false;  ///< A generation before this one may have had an effect.
  bool repeated = false;  ///< The owner's own claim again, whose answer was lost.
};
struct Replay {
  Record record;
};
struct Mismatch {
  Record record;
};
struct OtherProfile {
  Digest profile{};
};  ///< Compute the digest under this profile and claim again.
struct InProgress {
  Record record;
  std::optional<Duration> lease_left;
  Duration age{};  ///< Since `claimed`, by the store's clock: what Retry-After is computed from.
};
struct Uncertain {
  Record record;
};
struct Gone {
  Record record;
};
struct Ok {
  std::optional<Record> record;
};  ///< Done, or was done already; nothing: the record is absent now.
struct BecameUncertain {
  Record record;
};  ///< Release or a proof-less status after a takeover.
struct Lost {
  std::optional<Record> record;
};  ///< Another generation owns the key, or somebody settled it.
struct Changed {
  std::optional<Record> record;
};                    ///< Not what the operator looked at: look again.
struct Unchanged {};  ///< Overdue and sweep: nothing to do.

}  // namespace decision

using Decision =
    std::variant<decision::Execute, decision::Replay, decision::Mismatch, decision::OtherProfile,
                 decision::InProgress, decision::Uncertain, decision::Gone, decision::Ok,
                 decision::BecameUncertain, decision::Lost, decision::Changed, decision::Unchanged>;

/// What the audit keeps of a step. Steps of the ordinary road (claim, complete, replay) leave none.
enum class AuditEvent : std::uint8_t {
  taken_over = 1,
  became_uncertain = 2,
  late_completion = 3,  ///< uncertain or freed settled by its own owner after all
  late_result = 4,      ///< an owner's result that came too late: kept, never published
  resolved = 5,
  forgotten = 6,
  doubted = 7,
};
struct Audit {
  AuditEvent event = AuditEvent::resolved;
  Generation generation{};
  std::optional<State> before;
  std::optional<State> after;
  std::optional<StoredResult> late_result;
  bool contradicts = false;  ///< late_result says otherwise than what was settled: alarm.
};

/// The step to take: what the record becomes, what to answer, what to note.
struct Step {
  enum class Change : std::uint8_t { none, put, erase };
  Change change = Change::none;
  std::optional<Record> record;  ///< With put.
  Decision decision = decision::Unchanged{};
  std::optional<Audit> audit;
};

/// Decides one event on one scope. Pure: draws nothing, reads nothing, throws nothing.
Step decide(const std::optional<Record>& record, const Event& event, const Now& now);

}  // namespace einmal
