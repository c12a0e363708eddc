#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/error.hpp"
#include "einmal/fingerprint/fingerprint.hpp"
#include "einmal/gateway/ask.hpp"
#include "einmal/gateway/config.hpp"
#include "einmal/gateway/outcome_tokens.hpp"
#include "einmal/gateway/reconcile_mapping.hpp"
#include "einmal/gateway/route.hpp"
#include "einmal/gateway/upstream_pool.hpp"
#include "einmal/http/key_field.hpp"
#include "einmal/http/message_parser.hpp"
#include "einmal/http/problem.hpp"
#include "einmal/http/status_class.hpp"
#include "einmal/identity/caller.hpp"
#include "einmal/store/store.hpp"

namespace einmal::gateway {

/// An operation with everything that is computed once.
struct Operation {
  OperationConfig config;
  std::optional<PathTemplate> path;  ///< Nothing: every path (the built-in operation).
  FingerprintProfile profile;
  std::shared_ptr<const Profile> stored_profile;
  http::KeyNames keys;
  http::OutcomeOverrides outcomes;
  std::string label;  ///< What metrics and logs call it: one name for the built-in operation.
  std::shared_ptr<AskedService> authorize;  ///< Null: nobody is asked.
  std::optional<ReconcileMapping> reconcile;
};

/// What a request matched: the operation and the name it goes by in the scope.
struct Matched {
  const Operation* operation = nullptr;
  std::string name;
  explicit operator bool() const { return operation != nullptr; }
};

/// A configuration made ready to serve requests. Immutable but for the pool and the caller source,
/// which are used on the loop's thread.
struct Settings {
  GatewayConfig config;
  http::ParserLimits parser_limits;
  http::ProblemStyle problem_style;
  std::vector<Operation> operations;
  std::shared_ptr<UpstreamPool> pool;
  std::shared_ptr<identity::CallerSource> callers;
  std::optional<OutcomeTokens> outcome_tokens;
  std::shared_ptr<AskedService> caller_service;  ///< With `auth-request:`.

  /// The operation of a method and canonical path; nothing if it matches none.
  Matched match(std::string_view method, std::string_view canonical_path) const;
  /// Whether some operation takes its key from lines of that name.
  bool is_key_header(std::string_view name) const;
};

/// Errors: invalid, naming the option. `before`: settings whose pool and connections go on where
/// the upstream did not change; may be null.
Result<std::shared_ptr<const Settings>> make_settings(Loop& loop, GatewayConfig config,
                                                      const Settings* before);

}  // namespace einmal::gateway
