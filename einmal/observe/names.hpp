#pragma once

#include <string_view>

#include "einmal/base/error.hpp"
#include "einmal/core/record.hpp"

/// Values of labels and log fields, as docs/metrics.md lists them.

namespace einmal::detail {

inline std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::in_doubt:
      return "in_doubt";
    case ErrorCode::invalid:
      return "invalid";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::incompatible:
      return "incompatible";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";
}

inline std::string_view name(UncertainCause cause) {
  switch (cause) {
    case UncertainCause::none:
      return "none";
    case UncertainCause::lease_end:
      return "lease_end";
    case UncertainCause::outcome_unknown:
      return "outcome_unknown";
    case UncertainCause::after_takeover:
      return "after_takeover";
    case UncertainCause::owner_stopped:
      return "owner_stopped";
    case UncertainCause::operator_doubt:
      return "operator_doubt";
  }
  return "unknown";
}

inline std::string_view name(BodyKept kept) {
  switch (kept) {
    case BodyKept::kept:
      return "kept";
    case BodyKept::too_large:
      return "too_large";
    case BodyKept::streaming:
      return "streaming";
    case BodyKept::no_room:
      return "no_room";
    case BodyKept::not_supplied:
      return "not_supplied";
    case BodyKept::by_choice:
      return "by_choice";
  }
  return "unknown";
}

}  // namespace einmal::detail
