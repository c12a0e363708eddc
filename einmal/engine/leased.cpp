#include "einmal/engine/leased.hpp"

#include <utility>

namespace einmal {

namespace {

struct Recording {
  OwnedAttempt& attempt;

  Finished operator()(const leased::Completed& outcome) const {
    return attempt.settle(event::Final::completed, outcome.result, true);
  }
  Finished operator()(const leased::Failed& outcome) const {
    return attempt.settle(event::Final::failed, outcome.result, true);
  }
  Finished operator()(const leased::Released&) const { return attempt.release(); }
  Finished operator()(const leased::Uncertain& outcome) const {
    return attempt.mark_uncertain(UncertainCause::outcome_unknown, outcome.seen);
  }
};

RanLeased run(OwnedAttempt& attempt, const std::function<LeasedOutcome(LeasedAttempt&)>& handler) {
  OutsideCall call([&attempt] { return attempt.confirm(); });
  LeasedAttempt told{attempt.scope(), attempt.record(), call, attempt.lost()};
  try {
    LeasedOutcome outcome = handler(told);
    Finished finished = std::visit(Recording{attempt}, outcome);
    return {std::move(outcome), std::move(finished)};
  } catch (...) {
    // Whatever the handler did before it threw, nobody vouches for it. Destroying the attempt would
    // say the same, but not wait for the store.
    attempt.mark_uncertain();
    throw;
  }
}

}  // namespace

LeasedAnswer run_leased(BlockingEngine& engine, BeginRequest request,
                        const std::function<LeasedOutcome(LeasedAttempt&)>& handler) {
  BlockingBegun begun = engine.begin(std::move(request));
  return std::visit(
      [&](auto& answer) -> LeasedAnswer {
        if constexpr (std::is_same_v<std::decay_t<decltype(answer)>, OwnedAttempt>) {
          return run(answer, handler);
        } else {
          return std::move(answer);
        }
      },
      begun);
}

}  // namespace einmal
