#pragma once

#include <cstddef>
#include <string_view>

#include "einmal/base/clock.hpp"
#include "einmal/core/record.hpp"

namespace einmal {

struct GatewayConfig;

/// How a request through the gateway ended, for metrics and the access log. No key, caller, body or
/// credential is in it. Views are valid during the call only.
struct RequestEvent {
  std::string_view operation;  ///< Empty: matched none.
  std::string_view method;
  int status = 0;            ///< 0: the connection ended before an answer.
  std::string_view outcome;  ///< The value of Idempotency-Status; empty on unkeyed requests.
  std::string_view reason;   ///< The problem's reason where einmal itself answered.
  std::size_t request_body = 0, answer_body = 0;  ///< Bytes.
  Duration duration{};                            ///< From the whole head to the last byte sent.
  std::string_view traceparent;                   ///< As it came (W3C trace context), or empty.
};

/// How one exchange with the upstream ended.
struct UpstreamEvent {
  std::string_view operation;  ///< Empty: matched none, or the built-in operation.
  bool keyed = false;
  int status = 0;  ///< 0: no readable answer.
  bool reused_connection = false;
  bool uncertain =
      false;            ///< The request was sent, at least in part, and nobody knows the outcome.
  Duration duration{};  ///< From the first byte sent (or the attempt to connect) to the end.
};

/// What the gateway tells beside the engine's observer. Called on the gateway's thread; must not
/// block or throw. Every function has an empty default.
class GatewayEvents {
 public:
  virtual ~GatewayEvents() = default;
  /// Before the first request, and after each reload: what new requests follow from now on.
  virtual void configured(const GatewayConfig&) {}
  virtual void request_ended(const RequestEvent&) {}
  virtual void upstream_ended(const UpstreamEvent&) {}
  virtual void unmatched_keyed() {}         ///< A key on a request that matches no operation.
  virtual void refused_connection() {}      ///< Over limits.connections.
  virtual void connections(std::size_t) {}  ///< Client connections open now.
  virtual void buffered(std::size_t) {}     ///< Bytes of the buffer budget in use now.
  virtual void late_answer(State) {}        ///< An answer after answer_timeout settled its record.
};

/// Listens to nothing.
GatewayEvents& no_events();

}  // namespace einmal
