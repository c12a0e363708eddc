#pragma once

#include <functional>
#include <optional>
#include <string>

#include "einmal/fingerprint/fingerprint.hpp"
#include "shop/ledger.hpp"
#include "shop/message.hpp"

namespace einmal::shop {

/// How an idempotent shop treats keys.
struct KeyRules {
  bool required = true;  ///< Of a POST: without one it is refused.
  Duration retention = std::chrono::hours(24);
};

/// What makes the shop idempotent: each keyed request is one transaction on the books' own
/// database, in which the key is claimed, the work done and the answer kept. It is what a service
/// does that uses einmal as a library. Thread-safe.
class Once {
 public:
  /// The ledger must outlive it and keep keys.
  Once(Ledger& ledger, KeyRules rules);

  /// Whether a request is to go through `handle`: it carries a key, or should.
  bool concerns(const Request& request) const;

  /// The work of a request: its answer, or nothing if the connection is to be closed without one.
  /// An answer says by its status what becomes of the key (http::classify); nothing undoes all.
  using Work = std::function<std::optional<Reply>(Books&)>;
  /// Does the work unless it was done, and answers by the table of http/problem.hpp. `operation`
  /// names what the request asks for. Nothing: the connection is to be closed without an answer.
  std::optional<Reply> handle(const Request& request, const std::string& operation,
                              const Work& work);

 private:
  Ledger& ledger_;
  KeyRules rules_;
  FingerprintProfile profile_;
};

}  // namespace einmal::shop
