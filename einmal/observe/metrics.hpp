#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/engine/observer.hpp"

namespace einmal {

/// Prometheus metrics of one engine and its store; the names and what they count are in
/// docs/metrics.md. Counting is exact: each step is counted once, by the process that made it.
/// Labels are closed sets and configured operation names; no key, caller, body or credential is in
/// any of them.
///
/// As an Observer it is told on the engine's thread, as a StoreObserver on the store's. `scrape` is
/// thread-safe.
class Metrics final : public Observer, public StoreObserver {
 public:
  /// `operations` may appear as label values; every other name is counted as "other".
  explicit Metrics(const std::vector<std::string>& operations = {});
  ~Metrics() override;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// Names that a new configuration adds. Same thread as the functions of the gateway below.
  void add_operations(const std::vector<std::string>& operations);

  /// Everything in the text format 0.0.4, families and labels in a fixed order.
  std::string scrape() const;

  void begun(const BeginReport& report) override;
  void wait_started(const Scope& scope) override;
  void finished(const FinishReport& report) override;
  void renewed(const Scope& scope, Generation generation, Renewal renewal) override;
  void ownership_lost(const Scope& scope, Generation generation) override;
  void late_result(const Scope& scope, Generation generation, bool contradicts) override;
  void reconciled(const Scope& scope, Generation generation, Reconciled what) override;
  void store_answered(StoreCall call, Duration took, std::optional<ErrorCode> error) override;
  void overdue(std::size_t became_uncertain) override;
  void swept(std::size_t removed, std::size_t stripped) override;
  void measured(const answer::Stats& stats) override;
  void alarm(Alarm alarm, std::string_view detail) override;

  void committed(std::size_t commands, Duration took) noexcept override;

  // --- What a gateway counts beside its engine. Its thread only.

  struct Request {
    std::string_view operation;  ///< Empty: matched none, or the built-in operation.
    int status = 0;              ///< 0: the connection ended before an answer.
    std::string_view outcome;    ///< Idempotency-Status; empty: unkeyed.
    std::string_view reason;     ///< Of a problem that einmal itself answered, or empty.
    Duration took{};
  };
  void request_ended(const Request& request);
  struct Exchange {
    bool keyed = false;
    int status = 0;  ///< 0: no readable answer.
    bool reused_connection = false;
    bool uncertain = false;  ///< Sent at least in part, and nobody knows the outcome.
    Duration took{};
  };
  void exchange_ended(const Exchange& exchange);
  void unmatched_keyed();
  void connection_refused();
  void connections(std::size_t open);
  void buffered(std::size_t bytes);
  void late_answer(State settled);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace einmal
