#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "einmal/core/scope.hpp"
#include "einmal/engine/engine.hpp"
#include "einmal/fingerprint/fingerprint.hpp"
#include "einmal/gateway/buffer.hpp"
#include "einmal/gateway/settings.hpp"
#include "einmal/http/head.hpp"

namespace einmal::gateway {

/// A keyed request, whole. Does not depend on the client's connection, so that execution does not.
class KeyedRequest final : public FingerprintSource {
 public:
  KeyedRequest(std::shared_ptr<const Settings> settings, const Matched& matched, Budget& budget)
      : settings_(std::move(settings)),
        operation_(*matched.operation),
        name_(matched.name),
        memory(budget) {}

  const Settings& settings() const { return *settings_; }
  const Operation& operation() const { return operation_; }
  const OperationConfig& config() const { return operation_.config; }
  /// The operation's name in the scope.
  const std::string& name() const { return name_; }

  /// Computes the digest, from when on head and body are not changed. What is wrong with the
  /// request if it has no single meaning.
  std::optional<Unusable> compute();

  std::shared_ptr<const Profile> profile() const override { return operation_.stored_profile; }
  Fingerprint fingerprint() const override { return {operation_.stored_profile->id, digest_}; }
  std::optional<Digest> digest_under(const Profile& profile) const override;

 private:
  FingerprintInput input() const;

  std::shared_ptr<const Settings> settings_;
  const Operation& operation_;
  std::string name_;
  Digest digest_{};

 public:
  http::RequestHead head;
  Bytes body;
  Budget::Share memory;  ///< What `body` may take.
};

}  // namespace einmal::gateway
