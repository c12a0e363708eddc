#include "evidence.hpp"

#include <utility>
#include <vector>

namespace einmal::programs {

Result<std::unique_ptr<Evidence>> Evidence::open(const LogConfig& config, Store& store,
                                                 const Clock& clock, Observer& also) {
  LogOptions options;
  options.format = config.format;
  options.level = config.level;
  options.file = config.file.value_or("");
  options.requests = config.requests;
  auto log = Log::open(store, clock, std::move(options));
  if (!log) return pass_on(log);
  return std::unique_ptr<Evidence>(new Evidence(store, std::move(*log), also));
}

Evidence::Evidence(Store& store, std::unique_ptr<Log> log, Observer& also)
    : store_(store), log_(std::move(log)), observers_{&metrics_, log_.get(), &also} {
  store_.observe(&metrics_);
}

Evidence::~Evidence() { store_.observe(nullptr); }

Gateway::Hooks Evidence::hooks() {
  return {this, [this] { return metrics_.scrape(); }};
}

void Evidence::configured(const GatewayConfig& config) {
  std::vector<std::string> names;
  for (const OperationConfig& operation : config.operations) names.push_back(operation.name);
  metrics_.add_operations(names);
}

void Evidence::request_ended(const RequestEvent& event) {
  metrics_.request_ended(
      {event.operation, event.status, event.outcome, event.reason, event.duration});
  log_->request_ended({event.operation, event.method, event.status, event.outcome, event.reason,
                       event.request_body, event.answer_body, event.duration, event.traceparent});
}

void Evidence::upstream_ended(const UpstreamEvent& event) {
  metrics_.exchange_ended(
      {event.keyed, event.status, event.reused_connection, event.uncertain, event.duration});
}

void Evidence::unmatched_keyed() { metrics_.unmatched_keyed(); }
void Evidence::refused_connection() { metrics_.connection_refused(); }
void Evidence::connections(std::size_t open) { metrics_.connections(open); }
void Evidence::buffered(std::size_t bytes) { metrics_.buffered(bytes); }
void Evidence::late_answer(State settled) { metrics_.late_answer(settled); }

}  // namespace einmal::programs
