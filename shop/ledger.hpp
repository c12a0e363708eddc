#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "einmal/store/run_in_transaction.hpp"
#include "shop/books.hpp"

namespace einmal::shop {

/// The books for many threads at once: a few connections that are lent out, and transactions on
/// them. Thread-safe.
class Ledger {
 public:
  explicit Ledger(Place place) : place_(std::move(place)) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Work on the books. What it throws undoes it; BooksFailed becomes an error.
  using Work = std::function<void(Books&)>;
  /// Work that only looks, each statement for itself. Errors: unavailable.
  Result<void> look(const Work& work);
  /// One transaction that survives the end of the process. Errors: unavailable.
  Result<void> change(const Work& work);

  using KeyedWork = std::function<HandlerOutcome(Books&)>;
  /// Work that happens once for a key: run_in_transaction on the books' own database. Errors: its
  /// own. Now and then removes records whose time is over.
  Result<Ran> change_once(const TransactionRequest& request, const KeyedWork& work);

 private:
  using Free = std::unique_ptr<Connection>;
  class Lent;
  Result<Free> take();
  void give_back(Free connection);
  void sweep_now_and_then(Connection& connection);

  Place place_;
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<Free> free_;
  std::size_t made_ = 0;
  std::chrono::steady_clock::time_point swept_ = std::chrono::steady_clock::now();
};

}  // namespace einmal::shop
