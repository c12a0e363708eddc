#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "einmal/base/bytes.hpp"
#include "einmal/base/clock.hpp"
#include "einmal/base/ids.hpp"

namespace einmal {

/// The fencing token: strictly increasing for a key over the life of a store, across release, free,
/// sweep and re-creation. 1 is the first that a store hands out; 0 means none.
enum class Generation : std::uint64_t {};
constexpr std::uint64_t number(Generation g) { return static_cast<std::uint64_t>(g); }

/// Who owns an attempt: at least 122 random bits, chosen by the claimant before the claim is sent.
struct OwnerTokenTag {};
using OwnerToken = Id128<OwnerTokenTag>;

/// Public name of one logical operation: the same across takeovers, new when the key is claimed
/// anew.
struct OperationIdTag {};
using OperationId = Id128<OperationIdTag>;

/// SHA-256 as raw bytes.
using Digest = std::array<std::uint8_t, 32>;

/// What a request was: the digest and the profile (algorithm version plus options) it was computed
/// under. The profile is identified by the SHA-256 of its canonical form; digests compare only
/// within one profile.
struct Fingerprint {
  Digest profile{};
  Digest digest{};
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// States as stored. Absence of a record is the state before the first claim; *expired* and
/// *tombstone* follow from the clock (see `condition`), swept or not.
enum class State : std::uint8_t {
  processing = 1,
  completed = 2,
  failed = 3,
  uncertain = 4,
  freed = 5
};

enum class OnLeaseExpiry : std::uint8_t { uncertain = 1, takeover = 2 };
enum class AfterExpiry : std::uint8_t { claim_anew = 1, refuse = 2 };

/// Why a record is uncertain. Only an uncertainty that silence caused (`lease_end`) is undone by
/// its owner's renew or repeated claim.
enum class UncertainCause : std::uint8_t {
  none = 0,
  lease_end = 1,        ///< The lease was over and the record promised `uncertain`.
  outcome_unknown = 2,  ///< The owner saw that the outcome is unknown.
  after_takeover = 3,   ///< A release, or a status that proves nothing, when attempts > 1.
  owner_stopped = 4,    ///< The owner shut down before it knew ("gateway stopped").
  operator_doubt = 5,   ///< An operator declared doubt about a record without a lease.
};

/// Who settled a record: decides between `replayed` and `resolved`, and between *ok* and *lost*.
enum class SettledBy : std::uint8_t { nobody = 0, owner = 1, operator_ = 2, reconciler = 3 };

/// What the record promised when it was claimed. A later request's configuration never weakens it.
struct Policies {
  /// How long an owner may be silent. None: the owner is never presumed gone (same transaction).
  std::optional<Duration> lease;
  OnLeaseExpiry on_lease_expiry = OnLeaseExpiry::uncertain;
  Duration retention = std::chrono::hours(24);  ///< From settlement, never from the claim.
  AfterExpiry after_expiry = AfterExpiry::claim_anew;
  /// From the end of retention; used with `refuse`.
  Duration tombstone = std::chrono::hours(24 * 30);
  friend bool operator==(const Policies&, const Policies&) = default;
};

/// A granted lease. The length is kept beside the end so that an end further ahead than its own
/// length (a clock that went back, a damaged row) is cut at the first look.
struct Lease {
  BootTime end{};
  BootId boot{};  ///< Another boot: the lease is over.
  friend bool operator==(const Lease&, const Lease&) = default;
};

/// Whether the result's body was stored, and if not, why.
enum class BodyKept : std::uint8_t {
  kept = 1,
  too_large = 2,     ///< Over max_stored_body, or certain to be.
  streaming = 3,     ///< An event stream: has no end to wait for.
  no_room = 4,       ///< The buffer budget was used up.
  not_supplied = 5,  ///< Resolved without a body.
  by_choice = 6,  ///< replay = "resource", or a handler that rebuilds answers from the resource id.
};

/// Whether the business effect is known to have happened. `unknown`: a stored 500.
enum class Effect : std::uint8_t { known = 1, unknown = 2 };

/// A stable representation of an outcome. Bytes are kept as bytes.
struct StoredResult {
  int status = 0;
  /// Head lines in wire order, each `Name: value` followed by CRLF (RFC 9112 section 5), already
  /// filtered.
  Bytes headers;
  Bytes body;
  BodyKept body_kept = BodyKept::kept;
  Effect effect = Effect::known;
  int representation_version = 1;
  std::optional<std::string> resource_id;
  friend bool operator==(const StoredResult&, const StoredResult&) = default;
};

/// One logical operation as stored under its scope.
struct Record {
  State state = State::processing;
  Fingerprint fingerprint;
  Generation generation{};
  OwnerToken owner;
  OperationId operation_id;
  std::uint32_t attempts = 1;
  Policies policies;
  std::optional<Lease> lease;  ///< While processing with a lease length; kept while uncertain.
  UncertainCause cause = UncertainCause::none;
  SettledBy settled_by = SettledBy::nobody;
  WallTime created{};               ///< First claim of this operation id.
  WallTime claimed{};               ///< Claim of the current generation.
  std::optional<WallTime> settled;  ///< When it became completed, failed or freed.
  std::optional<WallTime> expires;  ///< Fixed at settlement from the record's own retention.
  /// completed, failed: the outcome, gone once it is a swept tombstone. uncertain: what the
  /// upstream sent, if anything (evidence, never replayed).
  std::optional<StoredResult> result;
  friend bool operator==(const Record&, const Record&) = default;
};

/// The store's clock at the moment of a decision.
struct Now {
  WallTime wall{};
  BootTime boot{};
  BootId boot_id{};
  /// The wall clock jumped ahead of the monotonic clock: nothing expires until they agree or an
  /// operator accepts.
  bool expiry_paused = false;
};

/// A record as the clock lets it be seen.
enum class Condition : std::uint8_t {
  absent,  ///< No record, or one that a claim treats as such: freed, or expired with `claim_anew`.
  processing,
  completed,
  failed,
  uncertain,
  tombstone,  ///< Expired with `refuse`, until the tombstone's end.
};

/// How `record` counts at `now`. Expiry is exact: at `expires` the record is expired, swept or not.
/// A tombstone that was swept has no result to replay and stays a tombstone even if the clock goes
/// back or expiry pauses.
Condition condition(const Record& record, const Now& now);
/// The same; nothing is absent.
Condition condition(const std::optional<Record>& record, const Now& now);

/// A final or freed record whose time is over (retention, then the tombstone if it has one): as if
/// it were not there, swept or not. Never processing, never uncertain, never while expiry pauses.
bool is_over(const Record& record, const Now& now);

/// Processing, uncertain, settled and not expired, or tombstone.
bool is_live(const Record& record, const Now& now);

/// What is left of the lease: never more than its own length, zero when over or of another boot;
/// nothing when the record has no lease (unknown, never elapsed).
std::optional<Duration> lease_left(const Record& record, const Now& now);

}  // namespace einmal
