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

Observer& no_observer() {
  static Observer observer;
  return observer;
}

}  // namespace einmal
