#pragma once

#include <cstddef>

#include "einmal/base/error.hpp"
#include "einmal/store/store.hpp"

namespace einmal {

/// What every store refuses before it does anything. Errors: invalid, naming the member: an event
/// beyond its limits (check_limits), a profile that is too long or not the one its fingerprint was
/// computed under, an act of an operator without saying who, an actor or evidence that is too long.
Result<void> check_request(const Request& request);

/// A batch or page limit as a store honours it: within 1..max_batch.
std::size_t bounded(std::size_t limit);

}  // namespace einmal
