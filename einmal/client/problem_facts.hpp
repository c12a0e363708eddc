#pragma once

#include <optional>
#include <string>

#include "einmal/client/request.hpp"

namespace einmal::client {

/// What the JSON body of an error says for programs: einmal's members (at the top, or inside
/// `error` in its Stripe dialect) and Stripe's own. Empty where there is none.
struct ProblemFacts {
  std::string reason;
  std::optional<int> recorded_status;
  std::string error_type, error_code;
};

/// Of answers from 400 on whose media type is JSON and whose body is at most 64 KiB.
ProblemFacts read_problem(const Answer& answer);

/// The member `state` of an operation resource; empty if there is none.
std::string read_state(const Answer& answer);

}  // namespace einmal::client
