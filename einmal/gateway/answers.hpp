#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "einmal/gateway/client_connection.hpp"

namespace einmal::gateway {

/// Why einmal itself answers. Each has its status in the contract.
enum class Reason : std::uint8_t {
  key_missing,
  key_invalid,
  body_unusable,
  request_malformed,
  upstream_failed,
  caller_missing,
  key_reused,
  in_progress,
  too_many_waiters,
  result_not_kept,
  ownership_lost,
  key_expired,
  body_too_large,
  head_too_large,
  quota,
  not_idempotent_here,
  upstream_unreachable,
  store_unavailable,
  overloaded,
  draining,
  fingerprint_unknown,
  caller_unavailable,
  released,
  outcome_uncertain,
  not_acceptable,
};
std::string_view name(Reason reason);

Async<> answer_problem(ClientConnection& client, Reason reason, std::string_view detail,
                       std::optional<int> status = std::nullopt);

}  // namespace einmal::gateway
