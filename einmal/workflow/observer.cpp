#include "einmal/workflow/observer.hpp"

namespace einmal::workflow {

std::string_view name(Point point) {
  switch (point) {
    case Point::picked:
      return "picked";
    case Point::local_committed:
      return "local_committed";
    case Point::intent_durable:
      return "intent_durable";
    case Point::call_ended:
      return "call_ended";
    case Point::result_durable:
      return "result_durable";
    case Point::doubt_durable:
      return "doubt_durable";
    case Point::delayed:
      return "delayed";
    case Point::stopped:
      return "stopped";
    case Point::finishing:
      return "finishing";
    case Point::finished:
      return "finished";
    case Point::lost:
      return "lost";
  }
  return "unknown";
}

Observer& no_workflow_observer() {
  static Observer nothing;
  return nothing;
}

}  // namespace einmal::workflow
