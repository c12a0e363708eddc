#pragma once

#include <memory>
#include <string>

#include "einmal/gateway/config.hpp"
#include "einmal/gateway/gateway.hpp"
#include "einmal/observe/fan_out.hpp"
#include "einmal/observe/log.hpp"
#include "einmal/observe/metrics.hpp"
#include "einmal/store/store.hpp"

namespace einmal::programs {

/// The metrics and the log of one gateway, and how it is told of them.
class Evidence final : public GatewayEvents {
 public:
  /// `also` is told what the engine does, too. All must outlive this, and the store must have no
  /// command at work when this goes. Errors: invalid, the log file cannot be opened.
  static Result<std::unique_ptr<Evidence>> open(const LogConfig& config, Store& store,
                                                const Clock& clock, Observer& also);
  ~Evidence() override;

  Observer& observer() { return observers_; }
  Gateway::Hooks hooks();

  void configured(const GatewayConfig& config) override;
  void request_ended(const RequestEvent& event) override;
  void upstream_ended(const UpstreamEvent& event) override;
  void unmatched_keyed() override;
  void refused_connection() override;
  void connections(std::size_t open) override;
  void buffered(std::size_t bytes) override;
  void late_answer(State settled) override;

 private:
  Evidence(Store& store, std::unique_ptr<Log> log, Observer& also);

  Store& store_;
  std::unique_ptr<Log> log_;
  Metrics metrics_;
  FanOut observers_;
};

}  // namespace einmal::programs
