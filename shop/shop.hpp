#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "einmal/base/random.hpp"
#include "shop/ledger.hpp"
#include "shop/message.hpp"
#include "shop/once.hpp"

namespace einmal::shop {

/// How the X-Demo headers of a request ask the shop to misbehave.
struct Steering {
  enum class Fault : std::uint8_t {
    none,
    drop_before_commit,  ///< The connection closes; nothing was booked.
    drop_after_commit,   ///< Booked; the connection closes without an answer.
    error_500,           ///< Booked; the answer says 500.
    busy_503,            ///< Not booked; 503, and Einmal-Outcome says released.
    hang,                ///< Not booked; no answer as long as the caller waits.
  };
  std::chrono::milliseconds delay{0};  ///< Of the work, before anything is booked.
  Fault fault = Fault::none;
};

/// Nothing: an X-Demo header cannot be understood.
std::optional<Steering> steering_of(const Request& request);

/// What the shop does against second copies; nothing, unless asked to.
struct Guards {
  /// Do each keyed request once. The ledger must keep keys.
  std::optional<KeyRules> keys;
  /// Refuse a POST or PUT whose Einmal-Fencing-Token is lower than one seen before for the same
  /// Idempotency-Key (without one, for the same Einmal-Operation-Id): 409, nothing was booked.
  bool fencing = false;
};

struct Route {
  std::string collection, id, key, item;
};

/// A small HTTP API that takes orders and payments and, unless its guards say otherwise, does *not*
/// deduplicate: the kind that needs einmal before it. Thread-safe.
class Shop {
 public:
  /// Both must outlive the shop.
  Shop(Ledger& ledger, Random& random, const Guards& guards);

  /// Lets some time pass; false: the shop is closing.
  using Pause = std::function<bool(std::chrono::milliseconds)>;
  /// Answers a request and performs the faults it asks for, but `hang`, which books nothing.
  /// Nothing: the connection is to be closed without an answer.
  std::optional<Reply> handle(const Request& request, const Steering& steering, const Pause& pause);

 private:
  std::optional<Reply> answer(const Request& request, const Steering& steering, const Pause& pause);
  Reply read(const Request& request, const Route& route);
  std::optional<Reply> change(const Request& request, const Route& route, Books& books);
  std::optional<Fence> fence_of(const Request& request) const;
  Reply post(const Request& request, const std::string& kind, Books& books);
  Reply put(const Request& request, const std::string& id, Books& books);

  Ledger& ledger_;
  Random& random_;
  std::optional<Once> once_;
  bool fencing_;
};

}  // namespace einmal::shop
