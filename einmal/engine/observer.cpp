#include "einmal/engine/observer.hpp"

namespace einmal {

std::string_view name(Point point) {
  switch (point) {
    case Point::claim_submitted:
      return "claim_submitted";
    case Point::claim_durable:
      return "claim_durable";
    case Point::before_first_byte:
      return "before_first_byte";
    case Point::first_byte_sent:
      return "first_byte_sent";
    case Point::request_sent:
      return "request_sent";
    case Point::answer_started:
      return "answer_started";
    case Point::answer_complete:
      return "answer_complete";
    case Point::settle_submitted:
      return "settle_submitted";
    case Point::settle_durable:
      return "settle_durable";
    case Point::before_answer:
      return "before_answer";
    case Point::answer_sent:
      return "answer_sent";
  }
  return "unknown";
}

std::string_view name(BeginOutcome outcome) {
  switch (outcome) {
    case BeginOutcome::execute:
      return "execute";
    case BeginOutcome::replay:
      return "replay";
    case BeginOutcome::mismatch:
      return "mismatch";
    case BeginOutcome::in_progress:
      return "in_progress";
    case BeginOutcome::uncertain:
      return "uncertain";
    case BeginOutcome::gone:
      return "gone";
    case BeginOutcome::released:
      return "released";
    case BeginOutcome::too_many_waiters:
      return "too_many_waiters";
    case BeginOutcome::incomparable:
      return "incomparable";
    case BeginOutcome::over_quota:
      return "over_quota";
    case BeginOutcome::draining:
      return "draining";
    case BeginOutcome::unavailable:
      return "unavailable";
    case BeginOutcome::dropped:
      return "dropped";
  }
  return "unknown";
}

std::string_view name(Finish finish) {
  switch (finish) {
    case Finish::complete:
      return "complete";
    case Finish::fail:
      return "fail";
    case Finish::release:
      return "release";
    case Finish::mark_uncertain:
      return "mark_uncertain";
    case Finish::abandon:
      return "abandon";
  }
  return "unknown";
}

std::string_view name(FinishOutcome outcome) {
  switch (outcome) {
    case FinishOutcome::recorded:
      return "recorded";
    case FinishOutcome::became_uncertain:
      return "became_uncertain";
    case FinishOutcome::lost:
      return "lost";
    case FinishOutcome::unrecorded:
      return "unrecorded";
    case FinishOutcome::given_up:
      return "given_up";
  }
  return "unknown";
}

std::string_view name(Renewal renewal) {
  switch (renewal) {
    case Renewal::confirmed:
      return "confirmed";
    case Renewal::lost:
      return "lost";
    case Renewal::failed:
      return "failed";
  }
  return "unknown";
}

std::string_view name(Reconciled reconciled) {
  switch (reconciled) {
    case Reconciled::completed:
      return "completed";
    case Reconciled::failed:
      return "failed";
    case Reconciled::freed:
      return "freed";
    case Reconciled::unknown:
      return "unknown";
    case Reconciled::changed:
      return "changed";
  }
  return "unknown";
}

std::string_view name(StoreCall call) {
  switch (call) {
    case StoreCall::claim:
      return "claim";
    case StoreCall::renew:
      return "renew";
    case StoreCall::finish:
      return "finish";
    case StoreCall::read:
      return "read";
    case StoreCall::maintain:
      return "maintain";
  }
  return "unknown";
}

std::string_view name(Alarm alarm) {
  switch (alarm) {
    case Alarm::generation_regressed:
      return "generation_regressed";
    case Alarm::late_contradiction:
      return "late_contradiction";
    case Alarm::background_full:
      return "background_full";
    case Alarm::expiry_paused:
      return "expiry_paused";
    case Alarm::reconciliation_given_up:
      return "reconciliation_given_up";
  }
  return "unknown";
}

Observer& no_observer() {
  static Observer observer;
  return observer;
}

}  // namespace einmal
