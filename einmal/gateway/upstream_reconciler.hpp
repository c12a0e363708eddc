#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "einmal/engine/reconciler.hpp"
#include "einmal/gateway/core.hpp"

namespace einmal::gateway {

/// Asks the upstream what became of uncertain operations, as their `reconcile` tables say. Follows
/// the configuration of the moment. Loop's thread only.
class UpstreamReconciler final : public Reconciler {
 public:
  explicit UpstreamReconciler(Core& core) : core_(core) {}

  bool is_wanted() const override;
  std::optional<ReconcileRules> rules(const Scope& scope) override;
  void ask(const StoredRecord& record, std::function<void(OutcomeFinding)> done) override;

 private:
  Core& core_;
};

}  // namespace einmal::gateway
