#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "einmal/base/clock.hpp"
#include "einmal/base/error.hpp"
#include "einmal/base/random.hpp"
#include "einmal/engine/observer.hpp"
#include "einmal/gateway/config.hpp"
#include "einmal/gateway/events.hpp"
#include "einmal/store/store.hpp"

namespace einmal {

/// An idempotent reverse proxy. Everything runs on the thread that calls `run`; the store brings
/// its own threads. Execution is never tied to a client's connection.
class Gateway {
 public:
  /// Beside the configuration. All of it may stay empty.
  struct Hooks {
    GatewayEvents* events = nullptr;       ///< Told what happened; must outlive the gateway.
    std::function<std::string()> metrics;  ///< Body of GET /metrics (Prometheus text format).
  };

  /// Everything given by reference must outlive the gateway. Nothing is opened yet.
  Gateway(GatewayConfig config, Store& store, const Clock& clock, Random& random,
          Observer& observer, Hooks hooks);
  Gateway(GatewayConfig config, Store& store, const Clock& clock, Random& random,
          Observer& observer);
  ~Gateway();

  /// Reads the TLS files and binds the listeners; connections are accepted by the system from here
  /// on and served by `run`. Errors: invalid (an unusable file or address), unavailable (port in
  /// use), each naming the option.
  Result<void> open();

  /// The ports that `open` bound; 0 where there is no such listener.
  std::uint16_t port() const;
  std::uint16_t metrics_port() const;

  /// Serves until a drain is over or `stop_now`. Call it once, after `open`.
  void run();

  /// Stops listening and lets executions run on for `drain`; then open records are marked uncertain
  /// ("owner stopped"; under takeover the lease is ended) and `run` returns. Thread-safe; not
  /// async-signal-safe.
  void begin_drain();
  /// `run` returns as soon as it can; what is open stays as a crash would leave it. Thread-safe.
  void stop_now();

  /// From now on new requests follow `config`; requests under way keep what they began with.
  /// Listeners, engine limits and the store stay; TLS files are read again. Blocks until it is
  /// done: call it from another thread than `run`'s, while that runs. Errors: invalid (and nothing
  /// has changed), unavailable (`run` has returned).
  Result<void> reload(GatewayConfig config);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace einmal
