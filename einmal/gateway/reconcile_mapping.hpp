#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/error.hpp"
#include "einmal/core/record.hpp"
#include "einmal/core/scope.hpp"
#include "einmal/engine/reconciler.hpp"
#include "einmal/gateway/config.hpp"
#include "einmal/gateway/config_file.hpp"
#include "einmal/gateway/small_answer.hpp"

namespace einmal::gateway {

/// How an operation's `reconcile` table asks, and what the answers mean. Immutable.
class ReconcileMapping {
 public:
  /// Errors: invalid, naming the member that cannot be used; the credentials file is read here.
  static Result<ReconcileMapping> make(const OperationConfig& operation);

  /// The request: target with the record's names in it, percent-encoded, and the credentials.
  http::RequestHead request(const Scope& scope, const OperationId& id) const;
  /// What an answer means. Two meanings at once, or a result that is not where it should be:
  /// unknown. The evidence quotes the configuration, never the answer or the key.
  OutcomeFinding judge(const SmallAnswer& answer) const;
  OutcomeFinding no_answer() const;

 private:
  ReconcileMapping() = default;
  std::optional<StoredResult> result_of(const SmallAnswer& answer, int status) const;

  ReconcileConfig config_;
  UpstreamKey upstream_key_ = UpstreamKey::original;
  std::size_t max_stored_body_ = 0;
  std::vector<ReconcileCondition> completed_, failed_, absent_;
  http::HeaderLines credentials_;
};

}  // namespace einmal::gateway
