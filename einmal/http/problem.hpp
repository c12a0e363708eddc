#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "einmal/base/clock.hpp"
#include "einmal/http/head.hpp"
#include "einmal/http/message_parser.hpp"
#include "einmal/http/replay_headers.hpp"

/// The answers that einmal itself gives: problem details (RFC 9457) with a closed set of reasons.

namespace einmal::http {

/// Why einmal answers itself. What each means for the client stands in `reason_table`.
enum class Reason : std::uint8_t {
  key_missing,
  key_invalid,
  body_unusable,
  request_malformed,
  request_timeout,
  outcome_invalid,
  caller_missing,
  not_found,
  method_not_allowed,
  not_acceptable,
  in_progress,
  too_many_waiters,
  result_not_kept,
  ownership_lost,
  outcome_conflict,
  key_expired,
  body_too_large,
  key_reused,
  quota,
  head_too_large,
  not_idempotent_here,
  upstream_failed,
  upstream_unreachable,
  store_unavailable,
  overloaded,
  draining,
  fingerprint_unknown,
  caller_unavailable,
  released,
  outcome_uncertain,
};

/// One line of the table of reasons: everything that follows from a reason alone.
struct ReasonRow {
  Reason reason;
  std::string_view id;     ///< "key-missing": the member `reason`, the end of the type URI.
  int status;              ///< Unless the problem says otherwise.
  std::string_view title;  ///< The same for every problem of this type.
  /// Whether the same request with the same key may be sent again and can then succeed.
  bool retryable;
  bool retry_after;        ///< Carries Retry-After.
  bool closes;             ///< The connection is closed after the answer.
  IdempotencyStatus mark;  ///< Its Idempotency-Status on keyed requests.
};
/// Every reason, in the order of the enumeration.
std::span<const ReasonRow> reason_table();
const ReasonRow& row(Reason reason);
std::optional<Reason> parse_reason(std::string_view id);

/// One such answer before it takes a form. The detail is for a person and holds no key, body,
/// credential or text of a database.
struct Problem {
  explicit Problem(Reason why, std::string what = {}) : reason(why), detail(std::move(what)) {}

  Reason reason;
  std::string detail;
  int status = 0;     ///< 0: the reason's own. (caller-missing 403, outcome-uncertain 409 ...)
  bool keyed = true;  ///< The request carries a key: the answer has an Idempotency-Status.
  /// For reasons that carry Retry-After; rounded up to seconds, at least one. Without it such a
  /// reason says one second. Others carry it if it is set.
  std::optional<Duration> retry_after;
  std::optional<std::string> operation;    ///< URL of the operation resource.
  std::optional<int> upstream_status;      ///< outcome-uncertain: what the upstream sent.
  std::optional<int> recorded_status;      ///< result-not-kept
  std::optional<std::string> resource_id;  ///< result-not-kept
  std::optional<std::string> challenge;    ///< WWW-Authenticate of caller-missing (401).
  std::optional<std::string> allow;        ///< Allow of method-not-allowed.
  std::optional<WallTime> expires;         ///< Idempotency-Expires of a settled record.
};

/// What a refused request is answered: its status, and head-too-large or request-malformed.
Problem problem_of(const RequestError& error);

enum class Dialect : std::uint8_t {
  ietf,    ///< application/problem+json
  stripe,  ///< {"error": {...}} as Stripe's API has it; key-reused is 400.
};
struct ProblemStyle {
  Dialect dialect = Dialect::ietf;
  /// Base URL of the documentation of reasons: types are base + reason, with
  /// `Link: rel="describedby"`. Nothing: types are `urn:einmal:problem:<reason>`.
  std::optional<std::string> documentation;
};

/// An answer of einmal's own: a whole head with Content-Length and Cache-Control: no-store.
struct OwnAnswer {
  ResponseHead head;
  std::string body;
};
OwnAnswer render(const Problem& problem, const ProblemStyle& style);

}  // namespace einmal::http
