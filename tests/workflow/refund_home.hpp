#pragma once

#include <memory>
#include <string>

namespace einmal::test {

/// Store and orders of one refund, in SQLite or PostgreSQL by which of refund_on_*.cpp is linked.
class RefundHome {
 public:
  virtual ~RefundHome() = default;
  /// As the example takes it.
  virtual std::string database() const = 0;
  /// State and number of refunds of its order: "refunded 1".
  virtual std::string order() const = 0;
};

/// With the order in state `paid`. Thread-safe.
std::unique_ptr<RefundHome> new_refund_home(const std::string& order);

}  // namespace einmal::test
