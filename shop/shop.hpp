#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "einmal/base/random.hpp"
#include "shop/ledger.hpp"

namespace einmal::shop {

struct Request {
  std::string method;
  std::string target;                          ///< Origin form.
  std::map<std::string, std::string> headers;  ///< Names in lower case; the last of each.
  std::string body;
};

struct Reply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

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
  /// Deduplicate by a unique key of the shop's own.
  bool idempotent = false;
  /// Refuse a POST or PUT whose Einmal-Fencing-Token is lower than one seen before for the same
  /// Idempotency-Key (without one, for the same Einmal-Operation-Id): 409, nothing was booked.
  bool fencing = false;
};

/// A small HTTP API that takes orders and payments and does *not* deduplicate: the kind that needs
/// einmal before it. Thread-safe.
class Shop {
 public:
  /// Both must outlive the shop.
  Shop(Ledger& ledger, Random& random, Guards guards)
      : ledger_(ledger), random_(random), guards_(guards) {}

  Reply handle(const Request& request);

 private:
  std::optional<Fence> fence_of(const Request& request) const;
  Reply post(const Request& request, const std::string& kind);
  Reply put(const Request& request, const std::string& id);
  Reply list(const std::string& kind, const std::string& key);
  Reply one(const std::string& method, const std::string& kind, const std::string& id);
  Reply effects(const std::string& item);

  Ledger& ledger_;
  Random& random_;
  Guards guards_;
};

/// What the shop answers to `fault` by itself (500, 503).
Reply faulty_reply(Steering::Fault fault);

}  // namespace einmal::shop
