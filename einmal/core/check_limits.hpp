#pragma once

#include "einmal/base/error.hpp"
#include "einmal/core/decide.hpp"
#include "einmal/core/limits.hpp"

namespace einmal {

/// Errors: invalid, naming the member and its bounds.
Result<void> check_limits(const Policies& policies);

/// Errors: invalid, naming the part and its bounds.
Result<void> check_limits(const StoredResult& result);

/// Whether `event` may enter `decide`: its policies and results are within the limits, tokens are
/// drawn, a resolution to completed or failed brings its result. Every store refuses what fails
/// here with this error, before anything is written.
Result<void> check_limits(const Event& event);

}  // namespace einmal
