#include "einmal/gateway/gateway.hpp"

#include <atomic>
#include <future>

#include "einmal/gateway/admin.hpp"
#include "einmal/gateway/client_connection.hpp"
#include "einmal/gateway/core.hpp"
#include "einmal/gateway/upstream_reconciler.hpp"

namespace einmal {

using gateway::ClientConnection;
using gateway::Core;
using gateway::Listener;
using gateway::Loop;
using gateway::Settings;

namespace {

constexpr Duration sweep_interval = std::chrono::seconds(1);
constexpr Duration measure_interval = std::chrono::seconds(5);
constexpr Duration reconcile_interval = std::chrono::seconds(1);

EngineLimits engine_limits(const GatewayLimits& limits) {
  EngineLimits engine;
  engine.waiters = limits.waiters;
  engine.waiters_per_key = limits.waiters_per_key;
  engine.waiters_per_caller = limits.waiters_per_caller;
  engine.live_per_caller = limits.live_per_caller;
  engine.uncertain_per_caller = limits.uncertain_per_caller;
  return engine;
}

gateway::Async<> serve(Core& core, std::unique_ptr<gateway::Stream> stream) {
  ClientConnection connection(core, std::move(stream));
  co_await connection.serve();
}

}  // namespace

class Gateway::Impl {
 public:
  Impl(GatewayConfig config, Store& store, const Clock& clock, Random& random, Observer& observer,
       Hooks hooks)
      : config_(std::move(config)),
        hooks_(std::move(hooks)),
        loop_(clock),
        engine_(std::in_place, store, loop_, clock, random, observer,
                engine_limits(config_.limits)),
        core_{loop_,
              clock,
              random,
              observer,
              hooks_.events != nullptr ? *hooks_.events : no_events(),
              *engine_,
              nullptr,
              gateway::Budget(config_.limits.buffer_budget)} {
    core_.request_ended = [this] { stop_if_idle(); };
  }

  ~Impl() {
    // Without the engine what is unfinished tells the store nothing, and stays as it is there.
    core_.request_ended = [] {};
    engine_.reset();
    loop_.destroy_roots();
  }

  Result<void> open() {
    auto settings = gateway::make_settings(loop_, config_, nullptr);
    if (!settings) return pass_on(settings);
    core_.settings = std::move(*settings);
    auto listener = gateway::listen(loop_, config_.listen, "listen");
    if (!listener) return pass_on(listener);
    listener_ = std::move(*listener);
    auto tls = use_tls(config_);
    if (!tls) return tls;
    if (config_.metrics) {
      auto admin = gateway::listen(loop_, *config_.metrics, "metrics.listen");
      if (!admin) return pass_on(admin);
      admin_listener_ = std::move(*admin);
    }
    return {};
  }

  void run() {
    core_.events.configured(config_);
    listener_->start([this](std::unique_ptr<gateway::Stream> stream) {
      if (core_.connections >= core_.settings->config.limits.connections) {
        core_.events.refused_connection();
        stream->close();
        return;
      }
      loop_.spawn(serve(core_, std::move(stream)));
    });
    if (admin_listener_) {
      admin_listener_->start([this](std::unique_ptr<gateway::Stream> stream) {
        loop_.spawn(gateway::serve_admin(core_, hooks_.metrics, std::move(stream)));
      });
    }
    engine_->start_sweeping(sweep_interval);
    engine_->start_measuring(measure_interval);
    engine_->start_reconciling(reconciler_, config_.name_space, reconcile_interval);
    loop_.run();
    ended_ = true;
  }

  void begin_drain() {
    loop_.post([this] { drain(); });
  }
  void stop_now() { loop_.stop(); }

  Result<void> reload(GatewayConfig config) {
    // What uses the loop is made on it, between two requests.
    std::promise<Result<void>> done;
    auto answered = done.get_future();
    loop_.post([&] { done.set_value(apply(std::move(config))); });
    while (answered.wait_for(Loop::tick) != std::future_status::ready) {
      if (ended_) return failure(ErrorCode::unavailable, "the gateway has ended");
    }
    return answered.get();
  }

  std::uint16_t port() const { return listener_ ? listener_->port() : 0; }
  std::uint16_t metrics_port() const { return admin_listener_ ? admin_listener_->port() : 0; }

 private:
  Result<void> use_tls(const GatewayConfig& config) {
    if (!config.tls) return {};
    auto tls = gateway::server_tls(*config.tls);
    if (!tls) return pass_on(tls);
    listener_->use_tls(std::move(*tls));
    return {};
  }

  /// All or nothing.
  Result<void> apply(GatewayConfig config) {
    auto settings = gateway::make_settings(loop_, config, core_.settings.get());
    if (!settings) return pass_on(settings);
    auto tls = use_tls(config);
    if (!tls) return tls;
    core_.budget.set_limit(config.limits.buffer_budget);
    core_.settings = std::move(*settings);
    core_.events.configured(core_.settings->config);
    return {};
  }

  void drain() {
    if (core_.draining) return;
    core_.draining = true;
    listener_->close();
    engine_->drain([this] {
      engine_idle_ = true;
      stop_if_idle();
    });
    loop_.run_after(core_.settings->config.drain, [this] { stop_engine(); });
    stop_if_idle();
  }

  void stop_if_idle() {
    if (core_.draining && engine_idle_ && core_.requests == 0) stop_engine();
  }

  void stop_engine() {
    if (stopping_) return;
    stopping_ = true;
    engine_->stop([this] { loop_.stop(); });
  }

  GatewayConfig config_;
  Hooks hooks_;
  Loop loop_;
  std::optional<Engine> engine_;
  Core core_;
  gateway::UpstreamReconciler reconciler_{core_};
  std::unique_ptr<Listener> listener_, admin_listener_;
  bool engine_idle_ = false, stopping_ = false;
  std::atomic<bool> ended_{false};  ///< `run` has returned.
};

Gateway::Gateway(GatewayConfig config, Store& store, const Clock& clock, Random& random,
                 Observer& observer, Hooks hooks)
    : impl_(std::make_unique<Impl>(std::move(config), store, clock, random, observer,
                                   std::move(hooks))) {}
Gateway::Gateway(GatewayConfig config, Store& store, const Clock& clock, Random& random,
                 Observer& observer)
    : Gateway(std::move(config), store, clock, random, observer, Hooks{}) {}
Gateway::~Gateway() = default;

Result<void> Gateway::open() { return impl_->open(); }
std::uint16_t Gateway::port() const { return impl_->port(); }
std::uint16_t Gateway::metrics_port() const { return impl_->metrics_port(); }
void Gateway::run() { impl_->run(); }
void Gateway::begin_drain() { impl_->begin_drain(); }
void Gateway::stop_now() { impl_->stop_now(); }
Result<void> Gateway::reload(GatewayConfig config) { return impl_->reload(std::move(config)); }

}  // namespace einmal
