#pragma once

#include <memory>
#include <string>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "refund.hpp"

namespace einmal::refund {

/// The orders in table `orders (id, state, refunds, payment)` of FOLDER/orders.db (sqlite:FOLDER),
/// or of the PostgreSQL database itself.
Result<std::unique_ptr<Orders>> open_orders(const std::string& database, const Clock& clock,
                                            Random& random);

}  // namespace einmal::refund
