#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "einmal/core/record.hpp"

// clang-format off
/// The state machine as one pure function.
///
///                 claim                     complete
///    (absent) ------------> processing ----------------> completed   -- replays its result
///        ^                   |  |  |  \    fail
///        |      release      |  |  |   `---------------> failed      -- replays its result
///        +-------------------+  |  |
///        |                      |  | lease over, `takeover` promised on both sides:
///        |                      |  `--> processing (attempts + 1), next generation, new owner
///        |                      | outcome seen to be unknown, or lease over and `uncertain` promised
///        |                      v
///     freed <-- resolve ---- uncertain ---- resolve / late completion by its own generation
///                                                        `----> completed | failed
///
/// completed and failed are final. uncertain is never left by the passage of time. After retention
/// a final record is expired at once, swept or not: claimed anew, or a tombstone that answers
/// "gone". processing and uncertain never expire.
// clang-format on

namespace einmal {

/// Events. Whatever is fresh in them (owner, operation id, generation) was drawn outside.
namespace event {

struct Claim {
  Fingerprint fingerprint;
  Policies policies;         ///< Kept in the record if it is created; never replace a record's own.
  OwnerToken owner;          ///< Chosen by the claimant before the claim is sent.
  OperationId operation_id;  ///< Used if a record is created.
  /// The next of the store's counter; consumed only if the answer is Execute and not `repeated`.
  Generation generation{};
};

/// The lease starts again; an uncertainty that only silence caused is undone.
struct Renew {
  Generation generation{};
  OwnerToken owner;
};

enum class Final : std::uint8_t { completed = 1, failed = 2 };

/// complete, fail.
struct Settle {
  Final outcome = Final::completed;
  Generation generation{};
  OwnerToken owner;
  StoredResult result;
  /// The upstream or handler itself said completed or failed (Einmal-Outcome, a handler's return),
  /// so that the status alone is not asked to prove anything after a takeover.
  bool declared = false;
};

/// "This attempt had no effect."
struct Release {
  Generation generation{};
  OwnerToken owner;
};

/// "The outcome is unknown." Repeating it, or saying it of a record that became uncertain by lease
/// end, is ok: the owner's cause and evidence then stand.
struct MarkUncertain {
  Generation generation{};
  OwnerToken owner;
  UncertainCause cause = UncertainCause::outcome_unknown;
  std::optional<StoredResult> seen;  ///< What the upstream sent, if a status came.
};

/// An owner that stops gives its lease back: under `takeover` the lease is over at once, otherwise
/// (or without a lease to end) the record is uncertain.
struct Abandon {
  Generation generation{};
  OwnerToken owner;
};

/// Any process looked: lease over and `uncertain` promised -> uncertain. A lease that ends further
/// ahead than its own length is cut here too, so drivers offer such records as well.
struct Overdue {};

/// An operator doubts a record that has no lease.
struct Doubt {
  Generation generation{};
};

enum class Resolution : std::uint8_t { completed = 1, failed = 2, freed = 3 };

struct Resolve {
  Generation generation{};  ///< The one that was looked at.
  Resolution to = Resolution::completed;
  std::optional<StoredResult> result;  ///< Required for completed and failed (see check_limits).
  SettledBy by = SettledBy::operator_;
  bool force = false;  ///< Also from processing.
};

struct Forget {
  Generation generation{};
};

/// Removes what is expired and past its tombstone; takes the result from a tombstone.
struct Sweep {};

}  // namespace event

using Event = std::variant<event::Claim, event::Renew, event::Settle, event::Release,
                           event::MarkUncertain, event::Abandon, event::Overdue, event::Doubt,
                           event::Resolve, event::Forget, event::Sweep>;

/// Decisions: what the store answers. Each that carries a record carries it as it stands after the
/// step.
namespace decision {

/// The claimant owns the operation under `record.generation`, for as long as the *record's* lease.
struct Execute {
  Record record;
  bool takeover = false;  ///< A generation before this one may have had an effect.
  bool repeated = false;  ///< The owner's own claim again, whose answer was lost.
  friend bool operator==(const Execute&, const Execute&) = default;
};
struct Replay {
  Record record;
  friend bool operator==(const Replay&, const Replay&) = default;
};
struct Mismatch {
  Record record;
  friend bool operator==(const Mismatch&, const Mismatch&) = default;
};
/// Compute the digest under this profile and claim again.
struct OtherProfile {
  Digest profile{};
  friend bool operator==(const OtherProfile&, const OtherProfile&) = default;
};
struct InProgress {
  Record record;
  std::optional<Duration> lease_left;  ///< Nothing: no lease, so not known.
  Duration age{};  ///< Since `claimed`, by the store's clock: what Retry-After is computed from.
  friend bool operator==(const InProgress&, const InProgress&) = default;
};
struct Uncertain {
  Record record;
  bool entered = false;  ///< By this claim: it found the lease over.
  friend bool operator==(const Uncertain&, const Uncertain&) = default;
};
struct Gone {
  Record record;
  friend bool operator==(const Gone&, const Gone&) = default;
};
/// Done, or was done already. Nothing: the record is absent now.
struct Ok {
  std::optional<Record> record;
  friend bool operator==(const Ok&, const Ok&) = default;
};
/// By Overdue; or a release, or a status that proves nothing, after a takeover.
struct BecameUncertain {
  Record record;
  friend bool operator==(const BecameUncertain&, const BecameUncertain&) = default;
};
/// Another generation owns the key, or somebody settled it. `record` is what stands now (it may
/// have another fingerprint: the one who lost is answered as any duplicate would be), `condition`
/// how a claim would see it. A repetition of a release whose first answer was in doubt is lost,
/// too: the record it released is gone.
struct Lost {
  std::optional<Record> record;
  Condition condition = Condition::absent;
  bool contradicts = false;  ///< With a late result: see Audit::contradicts.
  friend bool operator==(const Lost&, const Lost&) = default;
};
/// Not what the operator looked at: look again.
struct Changed {
  std::optional<Record> record;
  friend bool operator==(const Changed&, const Changed&) = default;
};
/// Overdue and sweep: nothing to do.
struct Unchanged {
  friend bool operator==(const Unchanged&, const Unchanged&) = default;
};

}  // namespace decision

using Decision =
    std::variant<decision::Execute, decision::Replay, decision::Mismatch, decision::OtherProfile,
                 decision::InProgress, decision::Uncertain, decision::Gone, decision::Ok,
                 decision::BecameUncertain, decision::Lost, decision::Changed, decision::Unchanged>;

/// What the audit keeps of a step. Steps of the ordinary road (claim, complete, release, replay)
/// leave none.
enum class AuditEvent : std::uint8_t {
  taken_over = 1,        ///< `generation` is the new one.
  became_uncertain = 2,  ///< By lease end, by its owner, by a release or status after a takeover.
  late_completion = 3,   ///< Uncertain or freed, settled by its own owner after all.
  late_result = 4,       ///< An owner's result that came too late: kept, never published.
  resolved = 5,
  forgotten = 6,
  doubted = 7,
  revived = 8,       ///< Uncertain by lease end, and its owner renewed or repeated its claim.
  late_release = 9,  ///< Uncertain, released by its own owner after all.
  generations_advanced = 10,  ///< Of the whole store, after a restore.
  time_accepted = 11,         ///< Of the whole store: an operator vouched for the wall clock.
};

struct Audit {
  AuditEvent event = AuditEvent::resolved;
  Generation generation{};      ///< The one the event spoke of.
  std::optional<State> before;  ///< Of the record; nothing: absent.
  std::optional<State> after;
  std::optional<event::Final> late_outcome;  ///< With late_result: what its owner said...
  std::optional<StoredResult> late_result;   ///< ... and would have published.
  /// A late result or completion says otherwise than what was settled (an effect under a key that
  /// was freed, forgotten or given anew; another outcome; another resource): alarm.
  bool contradicts = false;
  friend bool operator==(const Audit&, const Audit&) = default;
};

/// The step to take: what the record becomes, what to answer, what to note.
struct Step {
  enum class Change : std::uint8_t { none, put, erase };
  Change change = Change::none;
  std::optional<Record> record;  ///< With put.
  Decision decision = decision::Unchanged{};
  std::optional<Audit> audit;
};

/// Decides one event on one scope. Pure: draws nothing, reads nothing, throws nothing but
/// std::bad_alloc. The event has passed `check_limits`.
Step decide(const std::optional<Record>& record, const Event& event, const Now& now);

}  // namespace einmal
