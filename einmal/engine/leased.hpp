#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <variant>

#include "einmal/engine/blocking.hpp"
#include "einmal/engine/outside_call.hpp"

/// The leased way as one call: claim, run, record.
///
///     auto answer = run_leased(engine, request, [&](LeasedAttempt& attempt) -> LeasedOutcome {
///       if (!attempt.call.first_byte()) return leased::Released{*attempt.call.nothing_sent()};
///       const Response response = http.post(..., attempt.record.operation_id);   // may throw
///       if (response.status == 402) return leased::Failed{to_result(response)};
///       return leased::Completed{to_result(response)};
///     });

namespace einmal {

namespace leased {
/// It happened; repeats replay the result.
struct Completed {
  StoredResult result;
};
/// It was refused for good; repeats replay the refusal.
struct Failed {
  StoredResult result;
};
/// It did not happen; the key is free.
struct Released {
  NoEffect proof;
};
/// It may have happened; the record says so until somebody settles it.
struct Uncertain {
  std::string why;
  std::optional<StoredResult> seen;
};
}  // namespace leased
using LeasedOutcome =
    std::variant<leased::Completed, leased::Failed, leased::Released, leased::Uncertain>;

struct LeasedAttempt {
  const Scope& scope;    ///< What derive_key takes.
  const Record& record;  ///< Generation (the fencing token), operation id, attempts.
  OutsideCall& call;
  std::stop_token lost;  ///< Stop is requested when ownership is lost.
};

/// What became of a request: the handler's outcome and how it was recorded, or how a duplicate is
/// answered.
struct RanLeased {
  LeasedOutcome outcome;
  Finished finished;
};
using LeasedAnswer =
    std::variant<RanLeased, begun::Replay, begun::Mismatch, begun::InProgress, begun::Uncertain,
                 begun::Gone, begun::Released, begun::TooManyWaiters, begun::Incomparable,
                 begun::OverQuota, begun::Draining, begun::Unavailable>;

/// Claims and, if the key is this call's, runs `handler` and records what it says, durably, before
/// it returns. The first byte goes out only while the lease surely holds.
///
/// A handler that throws (a timeout, a lost connection, a fault of its own) leaves the record
/// uncertain, and the exception goes through: nobody vouches for what it did. One that knows that
/// nothing happened catches and returns Released, for which it needs the proof. Blocks.
LeasedAnswer run_leased(BlockingEngine& engine, BeginRequest request,
                        const std::function<LeasedOutcome(LeasedAttempt&)>& handler);

}  // namespace einmal
