#include "einmal/observe/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "einmal/observe/names.hpp"

namespace einmal {

namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::Registry;

using Buckets = Histogram::BucketBoundaries;
const Buckets latency_buckets{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                              0.1,    0.25,  0.5,    1,     2.5,  5,     10};
const Buckets wait_buckets{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
const Buckets batch_buckets{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string text(std::string_view view) { return std::string(view); }

Counter& counter(Registry& registry, const char* metric, const char* help) {
  return prometheus::BuildCounter().Name(metric).Help(help).Register(registry).Add({});
}
Gauge& gauge(Registry& registry, const char* metric, const char* help) {
  return prometheus::BuildGauge().Name(metric).Help(help).Register(registry).Add({});
}
Histogram& histogram(Registry& registry, const char* metric, const char* help,
                     const Buckets& buckets) {
  return prometheus::BuildHistogram().Name(metric).Help(help).Register(registry).Add({}, buckets);
}

/// One counter for each value of a closed set, all there from the start: a rate needs the zero.
template <class Value, std::size_t count>
class CounterOf {
 public:
  CounterOf(Registry& registry, const char* metric, const char* help, const char* label,
            const std::array<Value, count>& values)
      : values_(values) {
    auto& family = prometheus::BuildCounter().Name(metric).Help(help).Register(registry);
    for (std::size_t i = 0; i < count; ++i) {
      using detail::name;
      counters_[i] = &family.Add({{label, text(name(values[i]))}});
    }
  }
  Counter& operator[](Value value) {
    const auto at = std::find(values_.begin(), values_.end(), value);
    return *counters_[static_cast<std::size_t>(at - values_.begin())];
  }

 private:
  std::array<Value, count> values_;
  std::array<Counter*, count> counters_{};
};
template <class Value, std::size_t count>
CounterOf(Registry&, const char*, const char*, const char*, const std::array<Value, count>&)
    -> CounterOf<Value, count>;

/// Why a record is uncertain, without `none`.
constexpr std::array causes{UncertainCause::lease_end, UncertainCause::outcome_unknown,
                            UncertainCause::after_takeover, UncertainCause::owner_stopped,
                            UncertainCause::operator_doubt};
constexpr std::array unkept{BodyKept::too_large, BodyKept::streaming, BodyKept::no_room,
                            BodyKept::by_choice};
constexpr std::array all_errors{ErrorCode::unavailable, ErrorCode::in_doubt,     ErrorCode::invalid,
                                ErrorCode::unsupported, ErrorCode::incompatible, ErrorCode::corrupt,
                                ErrorCode::internal};
/// "2xx" and the like; an answer that never was is "none".
std::string status_class(int status) {
  return status >= 100 && status <= 999 ? std::to_string(status / 100) + "xx" : "none";
}

constexpr std::array<const char*, 7> states{"processing", "completed", "failed", "uncertain",
                                            "freed",      "tombstone", "expired"};

}  // namespace

/// What the metrics of engine and store are kept in.
struct EngineMetrics {
  explicit EngineMetrics(Registry& r);

  CounterOf<BeginOutcome, all_begin_outcomes.size()> begins;
  Counter& takeovers;
  Counter& resolved_replays;
  Gauge& executions;
  Gauge& waiters;
  Histogram& wait;
  std::map<std::pair<Finish, FinishOutcome>, Counter*> finishes;
  Gauge& unrecorded_writes;
  CounterOf<BodyKept, unkept.size()> unstorable;
  CounterOf<Renewal, all_renewals.size()> renewals;
  Counter& lost_owners;
  Counter& late_results;
  Counter& late_contradictions;
  CounterOf<UncertainCause, causes.size()> uncertain_entered;
  Counter& uncertain_resolved;
  CounterOf<Reconciled, all_reconciled.size()> reconciliations;
  Counter& swept;
  Counter& stripped;
  CounterOf<Alarm, all_alarms.size()> alarms;
};

struct StoreMetrics {
  explicit StoreMetrics(Registry& r);

  std::array<Histogram*, all_store_calls.size()> seconds{};
  std::map<std::pair<StoreCall, ErrorCode>, Counter*> errors;
  Histogram& batch_size;
  Histogram& commit;
  Counter& measurements;
  std::array<Gauge*, states.size()> records{};
  std::array<Gauge*, states.size()> bytes{};
  Gauge& oldest_live;
  Gauge& oldest_processing;
  Gauge& oldest_uncertain;
  Gauge& sweep_backlog;
  Gauge& sweep_lag;
  Gauge& expiry_paused;
};

struct GatewayMetrics {
  explicit GatewayMetrics(Registry& r);

  Family<Counter>& requests;
  Family<Histogram>& seconds;
  Family<Counter>& problems;
  Family<Counter>& upstream_answers;
  Histogram& upstream_keyed;
  Histogram& upstream_unkeyed;
  Counter& uncertain_reused;
  Counter& uncertain_fresh;
  Counter& unmatched_keyed;
  Counter& refused;
  Gauge& connections;
  Gauge& buffered;
  Counter& late_completed;
  Counter& late_failed;
};

EngineMetrics::EngineMetrics(Registry& r)
    : begins(r, "einmal_begins_total", "Requests with a key, by how the engine answered them.",
             "outcome", all_begin_outcomes),
      takeovers(counter(r, "einmal_takeovers_total",
                        "Executions of a record whose owner before fell silent.")),
      resolved_replays(counter(r, "einmal_resolved_replays_total",
                               "Replays of a result that an operator or reconciler gave.")),
      executions(gauge(r, "einmal_executions", "Attempts this process owns and has not ended.")),
      waiters(gauge(r, "einmal_waiters", "Duplicates in the wait queue.")),
      wait(histogram(r, "einmal_wait_seconds", "How long duplicates waited.", wait_buckets)),
      unrecorded_writes(gauge(r, "einmal_unrecorded_writes",
                              "Outcomes that are not durable yet and are written on.")),
      unstorable(r, "einmal_unstorable_total", "Results settled without their body, by reason.",
                 "reason", unkept),
      renewals(r, "einmal_renewals_total", "Heartbeats and reconfirmations, by answer.", "result",
               all_renewals),
      lost_owners(counter(r, "einmal_lost_owners_total",
                          "Executions that learned that the key is no longer their own.")),
      late_results(counter(r, "einmal_late_results_total",
                           "Results that came too late and were kept in the audit only.")),
      late_contradictions(counter(r, "einmal_late_contradictions_total",
                                  "Late results that say otherwise than what was settled.")),
      uncertain_entered(r, "einmal_uncertain_entered_total",
                        "Records that this process made uncertain, by cause.", "cause", causes),
      uncertain_resolved(counter(r, "einmal_uncertain_resolved_total",
                                 "Uncertain records settled or released by their own owner.")),
      reconciliations(r, "einmal_reconciliations_total",
                      "Questions of reconcilers about uncertain records, by what came of them.",
                      "outcome", all_reconciled),
      swept(counter(r, "einmal_swept_records_total", "Records that sweeps removed.")),
      stripped(counter(r, "einmal_stripped_tombstones_total",
                       "Tombstones from which sweeps took the result.")),
      alarms(r, "einmal_alarms_total", "What a person must look at.", "alarm", all_alarms) {
  auto& family = prometheus::BuildCounter()
                     .Name("einmal_finishes_total")
                     .Help("Ends of executions, by what was asked and what came of it.")
                     .Register(r);
  for (const Finish asked : all_finishes) {
    for (const FinishOutcome outcome : all_finish_outcomes) {
      finishes[{asked, outcome}] =
          &family.Add({{"asked", text(name(asked))}, {"outcome", text(name(outcome))}});
    }
  }
}

StoreMetrics::StoreMetrics(Registry& r)
    : batch_size(histogram(r, "einmal_commit_batch_size", "Commands made durable by one commit.",
                           batch_buckets)),
      commit(histogram(r, "einmal_commit_seconds", "Time of one commit's transaction.",
                       latency_buckets)),
      measurements(
          counter(r, "einmal_measurements_total", "Times the gauges of the store were read.")),
      oldest_live(gauge(r, "einmal_oldest_live_seconds", "Age of the oldest live record.")),
      oldest_processing(gauge(r, "einmal_oldest_processing_seconds",
                              "Age of the oldest attempt that is in flight.")),
      oldest_uncertain(
          gauge(r, "einmal_oldest_uncertain_seconds", "Age of the oldest uncertain record.")),
      sweep_backlog(gauge(r, "einmal_sweep_backlog", "Records that a sweep would touch now.")),
      sweep_lag(gauge(r, "einmal_sweep_lag_seconds", "How long the first of them has been due.")),
      expiry_paused(gauge(r, "einmal_expiry_paused",
                          "1 while nothing expires because the wall clock jumped ahead.")) {
  auto& latency = prometheus::BuildHistogram()
                      .Name("einmal_store_seconds")
                      .Help("Time from a call to the store until the engine has its answer.")
                      .Register(r);
  auto& failed = prometheus::BuildCounter()
                     .Name("einmal_store_errors_total")
                     .Help("Calls to the store that failed, by error code.")
                     .Register(r);
  for (std::size_t i = 0; i < all_store_calls.size(); ++i) {
    const StoreCall call = all_store_calls[i];
    seconds[i] = &latency.Add({{"call", text(name(call))}}, latency_buckets);
    for (const ErrorCode code : all_errors) {
      errors[{call, code}] =
          &failed.Add({{"call", text(name(call))}, {"code", text(detail::name(code))}});
    }
  }
  auto& by_state = prometheus::BuildGauge()
                       .Name("einmal_records")
                       .Help("Records in the store, by state.")
                       .Register(r);
  auto& size = prometheus::BuildGauge()
                   .Name("einmal_record_bytes")
                   .Help("Bytes of stored headers, bodies and resource ids, by state.")
                   .Register(r);
  for (std::size_t i = 0; i < states.size(); ++i) {
    records[i] = &by_state.Add({{"state", states[i]}});
    bytes[i] = &size.Add({{"state", states[i]}});
  }
}

GatewayMetrics::GatewayMetrics(Registry& r)
    : requests(prometheus::BuildCounter()
                   .Name("einmal_http_requests_total")
                   .Help("Requests through the gateway, by operation, Idempotency-Status and "
                         "class of the status.")
                   .Register(r)),
      seconds(prometheus::BuildHistogram()
                  .Name("einmal_http_request_seconds")
                  .Help("Time from the whole request head to the last byte of the answer.")
                  .Register(r)),
      problems(prometheus::BuildCounter()
                   .Name("einmal_http_problems_total")
                   .Help("Answers that the gateway itself gave, by reason.")
                   .Register(r)),
      upstream_answers(prometheus::BuildCounter()
                           .Name("einmal_upstream_answers_total")
                           .Help("Exchanges with the upstream, by class of the status.")
                           .Register(r)),
      upstream_keyed(prometheus::BuildHistogram()
                         .Name("einmal_upstream_seconds")
                         .Help("Time of one exchange with the upstream.")
                         .Register(r)
                         .Add({{"keyed", "true"}}, latency_buckets)),
      upstream_unkeyed(prometheus::BuildHistogram()
                           .Name("einmal_upstream_seconds")
                           .Help("Time of one exchange with the upstream.")
                           .Register(r)
                           .Add({{"keyed", "false"}}, latency_buckets)),
      uncertain_reused(prometheus::BuildCounter()
                           .Name("einmal_upstream_uncertain_total")
                           .Help("Exchanges whose outcome nobody saw, by kind of connection.")
                           .Register(r)
                           .Add({{"connection", "reused"}})),
      uncertain_fresh(prometheus::BuildCounter()
                          .Name("einmal_upstream_uncertain_total")
                          .Help("Exchanges whose outcome nobody saw, by kind of connection.")
                          .Register(r)
                          .Add({{"connection", "fresh"}})),
      unmatched_keyed(counter(r, "einmal_unmatched_keyed_total",
                              "Requests with a key that match no operation.")),
      refused(counter(r, "einmal_refused_connections_total",
                      "Client connections refused since too many were open.")),
      connections(gauge(r, "einmal_connections", "Client connections that are open.")),
      buffered(gauge(r, "einmal_buffered_bytes", "Bytes of the buffer budget in use.")),
      late_completed(prometheus::BuildCounter()
                         .Name("einmal_late_answers_total")
                         .Help("Answers after answer_timeout that settled their record.")
                         .Register(r)
                         .Add({{"state", "completed"}})),
      late_failed(prometheus::BuildCounter()
                      .Name("einmal_late_answers_total")
                      .Help("Answers after answer_timeout that settled their record.")
                      .Register(r)
                      .Add({{"state", "failed"}})) {}

/// A counter of requests that exists already: found without building its labels anew.
struct RequestLabels {
  std::string_view operation, outcome;
  int status_class;
  friend auto operator<=>(const RequestLabels&, const RequestLabels&) = default;
};

struct Metrics::Parts {
  Registry registry;
  EngineMetrics engine{registry};
  StoreMetrics store{registry};
  GatewayMetrics gateway{registry};
  std::map<std::string, Histogram*, std::less<>> operations;  ///< And their request times.
  std::map<RequestLabels, Counter*> requests;  ///< The views are into `operations`, `outcomes`.
  std::set<std::string, std::less<>> outcomes;
  std::map<std::string, Counter*, std::less<>> problems;
  std::array<Counter*, 10> upstream_answers{};

  std::pair<RequestLabels, Counter*> add_request(const RequestLabels& labels);
};

Metrics::Metrics(const std::vector<std::string>& operations) : parts_(std::make_unique<Parts>()) {
  add_operations({"", "other"});
  add_operations(operations);
}

Metrics::~Metrics() = default;

void Metrics::add_operations(const std::vector<std::string>& operations) {
  for (const std::string& operation : operations) {
    const std::string label = operation.empty() ? "none" : operation;
    Histogram& seconds = parts_->gateway.seconds.Add({{"operation", label}}, latency_buckets);
    parts_->operations.emplace(operation, &seconds);
  }
}

std::string Metrics::scrape() const {
  auto families = parts_->registry.Collect();
  std::sort(families.begin(), families.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto labels = [](const prometheus::ClientMetric& metric) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& label : metric.label) out.emplace_back(label.name, label.value);
    return out;
  };
  for (auto& family : families) {
    std::sort(family.metric.begin(), family.metric.end(),
              [&](const auto& a, const auto& b) { return labels(a) < labels(b); });
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

// --- the engine

void Metrics::begun(const BeginReport& report) {
  auto& engine = parts_->engine;
  engine.begins[report.outcome].Increment();
  if (report.waited) {
    engine.waiters.Decrement();
    engine.wait.Observe(in_seconds(*report.waited));
  }
  if (report.outcome == BeginOutcome::execute) engine.executions.Increment();
  if (report.takeover) engine.takeovers.Increment();
  if (report.resolved) engine.resolved_replays.Increment();
  if (report.entered) engine.uncertain_entered[UncertainCause::lease_end].Increment();
}

void Metrics::wait_started(const Scope&) { parts_->engine.waiters.Increment(); }

void Metrics::finished(const FinishReport& report) {
  auto& engine = parts_->engine;
  engine.finishes.at({report.asked, report.outcome})->Increment();
  const bool first = !report.background;
  if (first && !report.late) engine.executions.Decrement();
  if (report.outcome == FinishOutcome::unrecorded) engine.unrecorded_writes.Increment();
  if (report.background) engine.unrecorded_writes.Decrement();

  const bool settles = report.asked == Finish::complete || report.asked == Finish::fail;
  const bool recorded = report.outcome == FinishOutcome::recorded;
  if (settles && first && report.body_kept != BodyKept::kept &&
      report.body_kept != BodyKept::not_supplied) {
    engine.unstorable[report.body_kept].Increment();
  }
  if (report.was_uncertain && recorded && (settles || report.asked == Finish::release)) {
    engine.uncertain_resolved.Increment();
  }
  if (report.outcome == FinishOutcome::became_uncertain && !report.was_uncertain) {
    engine.uncertain_entered[UncertainCause::after_takeover].Increment();
  }
  if (recorded && report.asked == Finish::mark_uncertain && report.cause != UncertainCause::none) {
    engine.uncertain_entered[report.cause].Increment();
  }
  const bool lease_ended = report.claimed.policies.on_lease_expiry == OnLeaseExpiry::takeover &&
                           report.claimed.policies.lease;
  if (recorded && report.asked == Finish::abandon && !lease_ended) {
    engine.uncertain_entered[UncertainCause::owner_stopped].Increment();
  }
}

void Metrics::renewed(const Scope&, Generation, Renewal renewal) {
  parts_->engine.renewals[renewal].Increment();
}
void Metrics::ownership_lost(const Scope&, Generation) { parts_->engine.lost_owners.Increment(); }
void Metrics::late_result(const Scope&, Generation, bool contradicts) {
  parts_->engine.late_results.Increment();
  if (contradicts) parts_->engine.late_contradictions.Increment();
}
void Metrics::reconciled(const Scope&, Generation, Reconciled what) {
  parts_->engine.reconciliations[what].Increment();
}
void Metrics::overdue(std::size_t became_uncertain) {
  parts_->engine.uncertain_entered[UncertainCause::lease_end].Increment(
      static_cast<double>(became_uncertain));
}
void Metrics::swept(std::size_t removed, std::size_t stripped) {
  parts_->engine.swept.Increment(static_cast<double>(removed));
  parts_->engine.stripped.Increment(static_cast<double>(stripped));
}
void Metrics::alarm(Alarm alarm, std::string_view) { parts_->engine.alarms[alarm].Increment(); }

// --- the store

void Metrics::store_answered(StoreCall call, Duration took, std::optional<ErrorCode> error) {
  auto& store = parts_->store;
  store.seconds[static_cast<std::size_t>(call)]->Observe(in_seconds(took));
  if (error) store.errors.at({call, *error})->Increment();
}

void Metrics::committed(std::size_t commands, Duration took) noexcept {
  parts_->store.batch_size.Observe(static_cast<double>(commands));
  parts_->store.commit.Observe(in_seconds(took));
}

void Metrics::measured(const answer::Stats& stats) {
  auto& store = parts_->store;
  const std::array<const answer::Stats::PerCondition*, states.size()> by_state{
      &stats.processing, &stats.completed, &stats.failed, &stats.uncertain,
      &stats.freed,      &stats.tombstone, &stats.expired};
  for (std::size_t i = 0; i < states.size(); ++i) {
    store.records[i]->Set(static_cast<double>(by_state[i]->records));
    store.bytes[i]->Set(static_cast<double>(by_state[i]->bytes));
  }
  const auto age = [](const std::optional<Duration>& duration) {
    return duration ? in_seconds(*duration) : 0.0;
  };
  store.oldest_live.Set(age(stats.oldest_live));
  store.oldest_processing.Set(age(stats.oldest_processing));
  store.oldest_uncertain.Set(age(stats.oldest_uncertain));
  store.sweep_backlog.Set(static_cast<double>(stats.sweep_backlog));
  store.sweep_lag.Set(age(stats.sweep_lag));
  store.expiry_paused.Set(stats.expiry_paused ? 1 : 0);
  store.measurements.Increment();
}

// --- the gateway

void Metrics::request_ended(const Request& request) {
  auto known = parts_->operations.find(request.operation);
  if (known == parts_->operations.end()) known = parts_->operations.find("other");
  known->second->Observe(in_seconds(request.took));
  const RequestLabels labels{known->first, request.outcome, request.status / 100};
  auto at = parts_->requests.find(labels);
  if (at == parts_->requests.end())
    at = parts_->requests.emplace(parts_->add_request(labels)).first;
  at->second->Increment();
  if (request.reason.empty()) return;
  auto problem = parts_->problems.find(request.reason);
  if (problem == parts_->problems.end()) {
    Counter& made = parts_->gateway.problems.Add({{"reason", text(request.reason)}});
    problem = parts_->problems.emplace(request.reason, &made).first;
  }
  problem->second->Increment();
}

std::pair<RequestLabels, Counter*> Metrics::Parts::add_request(const RequestLabels& labels) {
  const auto label = [](std::string_view value, const char* empty) {
    return value.empty() ? empty : text(value);
  };
  Counter& made = gateway.requests.Add({{"operation", label(labels.operation, "none")},
                                        {"outcome", label(labels.outcome, "unkeyed")},
                                        {"status", status_class(labels.status_class * 100)}});
  const std::string_view outcome = *outcomes.emplace(labels.outcome).first;
  return {{labels.operation, outcome, labels.status_class}, &made};
}

void Metrics::exchange_ended(const Exchange& exchange) {
  auto& gateway = parts_->gateway;
  (exchange.keyed ? gateway.upstream_keyed : gateway.upstream_unkeyed)
      .Observe(in_seconds(exchange.took));
  auto& answers = parts_->upstream_answers[static_cast<std::size_t>(exchange.status / 100) % 10];
  if (!answers) {
    answers = &gateway.upstream_answers.Add({{"status", status_class(exchange.status)}});
  }
  answers->Increment();
  if (!exchange.uncertain) return;
  (exchange.reused_connection ? gateway.uncertain_reused : gateway.uncertain_fresh).Increment();
}

void Metrics::unmatched_keyed() { parts_->gateway.unmatched_keyed.Increment(); }
void Metrics::connection_refused() { parts_->gateway.refused.Increment(); }
void Metrics::connections(std::size_t open) {
  parts_->gateway.connections.Set(static_cast<double>(open));
}
void Metrics::buffered(std::size_t bytes) {
  parts_->gateway.buffered.Set(static_cast<double>(bytes));
}
void Metrics::late_answer(State settled) {
  (settled == State::completed ? parts_->gateway.late_completed : parts_->gateway.late_failed)
      .Increment();
}

}  // namespace einmal
