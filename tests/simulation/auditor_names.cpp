#include "auditor.hpp"

namespace einmal::simulation {

std::string_view name(Outcome value) {
  switch (value) {
    case Outcome::success:
      return "with the outcome";
    case Outcome::unrecorded:
      return "unrecorded with the outcome";
    case Outcome::mismatch:
      return "mismatch";
    case Outcome::in_progress:
      return "in progress";
    case Outcome::uncertain:
      return "uncertain";
    case Outcome::unknown:
      return "unknown";
    case Outcome::gone:
      return "gone";
    case Outcome::released:
      return "released";
    case Outcome::nothing_happened:
      return "nothing happened";
    case Outcome::ownership_lost:
      return "ownership lost";
  }
  return "?";
}

std::string_view name(RecordState value) {
  switch (value) {
    case RecordState::absent:
      return "absent";
    case RecordState::processing:
      return "processing";
    case RecordState::completed:
      return "completed";
    case RecordState::failed:
      return "failed";
    case RecordState::uncertain:
      return "uncertain";
    case RecordState::freed:
      return "freed";
  }
  return "?";
}

std::string_view name(Asked value) {
  switch (value) {
    case Asked::claim:
      return "claim";
    case Asked::renew:
      return "renew";
    case Asked::complete:
      return "complete";
    case Asked::fail:
      return "fail";
    case Asked::release:
      return "release";
    case Asked::mark_uncertain:
      return "mark uncertain";
    case Asked::abandon:
      return "abandon";
    case Asked::overdue:
      return "overdue";
    case Asked::doubt:
      return "doubt";
    case Asked::resolve:
      return "resolve";
    case Asked::forget:
      return "forget";
    case Asked::sweep:
      return "sweep";
  }
  return "?";
}

std::string_view name(Said value) {
  switch (value) {
    case Said::execute:
      return "execute";
    case Said::replay:
      return "replay";
    case Said::mismatch:
      return "mismatch";
    case Said::other_profile:
      return "other profile";
    case Said::in_progress:
      return "in progress";
    case Said::uncertain:
      return "uncertain";
    case Said::gone:
      return "gone";
    case Said::ok:
      return "ok";
    case Said::became_uncertain:
      return "became uncertain";
    case Said::lost:
      return "lost";
    case Said::changed:
      return "changed";
    case Said::unchanged:
      return "unchanged";
  }
  return "?";
}

}  // namespace einmal::simulation
