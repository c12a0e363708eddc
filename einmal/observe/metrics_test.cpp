#include "einmal/observe/metrics.hpp"

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

std::string file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

class MetricsTest : public EngineTest {
 protected:
  MetricsTest() { told_instead = &metrics; }

  /// The value of one line, such as `einmal_begins_total{outcome="replay"}`; -1: no such line.
  double value(const std::string& line) const {
    std::istringstream lines(metrics.scrape());
    for (std::string text; std::getline(lines, text);) {
      if (text.starts_with(line + " ")) return std::stod(text.substr(line.size() + 1));
    }
    return -1;
  }
  double begins(const std::string& outcome) const {
    return value("einmal_begins_total{outcome=\"" + outcome + "\"}");
  }
  double entered(const std::string& cause) const {
    return value("einmal_uncertain_entered_total{cause=\"" + cause + "\"}");
  }

  Metrics metrics{{"create-order", "refund"}};
};

TEST_F(MetricsTest, EverythingOfAClosedSetIsThereBeforeItHappens) {
  EXPECT_EQ(begins("replay"), 0);
  EXPECT_EQ(value("einmal_finishes_total{asked=\"abandon\",outcome=\"given_up\"}"), 0);
  EXPECT_EQ(value("einmal_records{state=\"tombstone\"}"), 0);
  EXPECT_EQ(value("einmal_alarms_total{alarm=\"generation_regressed\"}"), 0);
  EXPECT_EQ(value("einmal_store_errors_total{call=\"claim\",code=\"in_doubt\"}"), 0);
}

TEST_F(MetricsTest, EachAnswerIsCountedOnce) {
  Asking other;
  other.body = "other";
  Asked& owner = ask("K");
  ask("K");
  ask("K", other);
  EXPECT_EQ(value("einmal_executions"), 1);
  owner.settle();
  scheduler.run_ready();
  ask("K");
  ask("K");
  EXPECT_EQ(begins("execute"), 1);
  EXPECT_EQ(begins("in_progress"), 1);
  EXPECT_EQ(begins("mismatch"), 1);
  EXPECT_EQ(begins("replay"), 2);
  EXPECT_EQ(value("einmal_executions"), 0);
  EXPECT_EQ(value("einmal_finishes_total{asked=\"complete\",outcome=\"recorded\"}"), 1);
  EXPECT_EQ(value("einmal_store_seconds_count{call=\"claim\"}"), 5);
}

TEST_F(MetricsTest, WaitsAndTheirLengthAreMeasured) {
  Asked& owner = ask("K");
  ask("K", waiting(10s));
  Asked& gone = ask("K", waiting(10s));
  EXPECT_EQ(value("einmal_waiters"), 2);
  scheduler.advance(1s);
  engine().drop(gone.ticket);
  EXPECT_EQ(value("einmal_waiters"), 1);
  scheduler.advance(1s);
  owner.settle();
  scheduler.run_ready();
  EXPECT_EQ(value("einmal_waiters"), 0);
  EXPECT_EQ(value("einmal_wait_seconds_sum"), 3);
  EXPECT_EQ(value("einmal_wait_seconds_bucket{le=\"1\"}"), 1);
  EXPECT_EQ(value("einmal_wait_seconds_bucket{le=\"2.5\"}"), 2);
}

TEST_F(MetricsTest, UncertainIsCountedByCauseAndByTheProcessThatMadeItSo) {
  Asked& said = ask("said");
  said.mark_uncertain();
  Process& vanished = start();
  for (const char* key : {"by a request", "by a sweep", "by a waiter"}) {
    std::string name = key;
    std::replace(name.begin(), name.end(), ' ', '-');
    ask(vanished, name);
  }
  vanished.crash();
  scheduler.advance(29s);
  ask("by-a-waiter", waiting(10s));
  scheduler.advance(1s + 10ms);
  EXPECT_EQ(entered("lease_end"), 1);
  ask("by-a-request");
  ask("by-a-request");
  EXPECT_EQ(entered("lease_end"), 2);
  engine().start_sweeping(10s);
  scheduler.advance(10s);
  EXPECT_EQ(entered("lease_end"), 3);
  EXPECT_EQ(entered("outcome_unknown"), 1);

  said.settle();
  scheduler.run_ready();
  EXPECT_EQ(value("einmal_uncertain_resolved_total"), 1);
}

TEST_F(MetricsTest, ALateAnswerAfterALeaseWasGivenBackResolvesNothing) {
  Asking asking;
  asking.on_lease_expiry = OnLeaseExpiry::takeover;
  Asked& owner = ask("K", asking);
  ask("other");
  faults().inject(Fault::stalled, [](const Request& request) {
    const auto* transition = std::get_if<request::Transition>(&request);
    return transition && transition->scope.key() == "other";
  });
  engine().stop({});
  scheduler.run_ready();
  owner.settle();
  scheduler.run_ready();
  EXPECT_EQ(how(owner), "recorded");
  EXPECT_EQ(value("einmal_uncertain_resolved_total"), 0);
  EXPECT_EQ(value("einmal_executions"), 1);
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(value("einmal_executions"), 0);
  EXPECT_EQ(entered("owner_stopped"), 1);
}

TEST_F(MetricsTest, ATakeoverCountsItsCostsOnBothSides) {
  Asking asking;
  asking.on_lease_expiry = OnLeaseExpiry::takeover;
  asking.lease = 3s;
  Asked& stale = ask("K", asking);
  clock.advance(3s);
  Asked& successor = ask(start(), "K", asking);
  EXPECT_EQ(value("einmal_takeovers_total"), 1);
  stale.settle();
  scheduler.run_ready();
  EXPECT_EQ(value("einmal_lost_owners_total"), 1);
  EXPECT_EQ(value("einmal_late_results_total"), 1);
  EXPECT_EQ(value("einmal_late_contradictions_total"), 0);
  successor.release();
  scheduler.run_ready();
  EXPECT_EQ(entered("after_takeover"), 1);
  EXPECT_EQ(value("einmal_executions"), 0);
}

TEST_F(MetricsTest, AnUnrecordedOutcomeIsAGaugeUntilItIsDurable) {
  Asked& owner = ask("K");
  faults().inject(Fault::refused, is_event<event::Settle>, FaultStore::forever);
  owner.settle();
  scheduler.advance(5s);
  EXPECT_EQ(value("einmal_unrecorded_writes"), 1);
  EXPECT_EQ(value("einmal_executions"), 0);
  EXPECT_GE(value("einmal_store_errors_total{call=\"finish\",code=\"unavailable\"}"), 5);
  faults().heal();
  scheduler.advance(5s);
  EXPECT_EQ(value("einmal_unrecorded_writes"), 0);
  EXPECT_EQ(value("einmal_finishes_total{asked=\"complete\",outcome=\"recorded\"}"), 1);
  EXPECT_EQ(value("einmal_finishes_total{asked=\"complete\",outcome=\"unrecorded\"}"), 1);
}

TEST_F(MetricsTest, AResultWithoutItsBodyIsCountedByReasonAndOnce) {
  Asked& owner = ask("K");
  faults().inject(Fault::refused, is_event<event::Settle>, FaultStore::forever);
  StoredResult result;
  result.status = 200;
  result.body_kept = BodyKept::streaming;
  owner.execution().settle(event::Final::completed, result, false, [](Finished) {});
  scheduler.advance(5s);
  faults().heal();
  scheduler.advance(5s);
  EXPECT_EQ(value("einmal_unstorable_total{reason=\"streaming\"}"), 1);
}

TEST_F(MetricsTest, GaugesOfTheStoreFollowItsStatistics) {
  ask("K1");
  ask("K2").settle(201, "12345");
  scheduler.run_ready();
  ask("K3").mark_uncertain();
  scheduler.run_ready();
  engine().start_measuring(10s);
  scheduler.advance(100s);
  EXPECT_EQ(value("einmal_records{state=\"processing\"}"), 1);
  EXPECT_EQ(value("einmal_records{state=\"completed\"}"), 1);
  EXPECT_EQ(value("einmal_record_bytes{state=\"completed\"}"), 5);
  EXPECT_GE(value("einmal_oldest_processing_seconds"), 85);
  EXPECT_GE(value("einmal_oldest_uncertain_seconds"), 85);
  EXPECT_GE(value("einmal_measurements_total"), 7);
}

TEST_F(MetricsTest, GatewayCountsAreByConfiguredOperationOnly) {
  metrics.request_ended({"create-order", 201, "executed", "", 3ms});
  metrics.request_ended({"create-order", 201, "replayed", "", 1ms});
  metrics.request_ended({"POST /orders/4711/secret", 409, "in-progress", "in-progress", 1ms});
  metrics.request_ended({"", 200, "", "", 1ms});
  metrics.request_ended({"", 0, "", "", 1ms});
  EXPECT_EQ(value("einmal_http_requests_total{operation=\"create-order\",outcome=\"replayed\","
                  "status=\"2xx\"}"),
            1);
  EXPECT_EQ(value("einmal_http_requests_total{operation=\"other\",outcome=\"in-progress\","
                  "status=\"4xx\"}"),
            1);
  EXPECT_EQ(value("einmal_http_requests_total{operation=\"none\",outcome=\"unkeyed\","
                  "status=\"none\"}"),
            1);
  EXPECT_EQ(value("einmal_http_problems_total{reason=\"in-progress\"}"), 1);
  EXPECT_EQ(metrics.scrape().find("4711"), std::string::npos);
  metrics.add_operations({"POST /orders/4711/secret"});
  metrics.request_ended({"POST /orders/4711/secret", 201, "executed", "", 1ms});
  EXPECT_NE(metrics.scrape().find("4711"), std::string::npos) << "configured since";
}

TEST_F(MetricsTest, UncertainOutcomesOnReusedConnectionsAreAMetricOfTheirOwn) {
  metrics.exchange_ended({true, 201, true, false, 3ms});
  metrics.exchange_ended({true, 0, true, true, 3ms});
  metrics.exchange_ended({true, 0, false, true, 3ms});
  metrics.exchange_ended({false, 502, false, false, 3ms});
  EXPECT_EQ(value("einmal_upstream_uncertain_total{connection=\"reused\"}"), 1);
  EXPECT_EQ(value("einmal_upstream_uncertain_total{connection=\"fresh\"}"), 1);
  EXPECT_EQ(value("einmal_upstream_seconds_count{keyed=\"true\"}"), 3);
  EXPECT_EQ(value("einmal_upstream_answers_total{status=\"none\"}"), 2);
}

/// One of everything, on virtual time: each line of the scrape is predictable.
class ScriptedRun : public MetricsTest {
 protected:
  void play() {
    Asking other, takeover;
    other.body = "other";
    takeover.on_lease_expiry = OnLeaseExpiry::takeover;
    takeover.lease = 3s;
    Asked& first = ask("order-1");
    ask("order-1");
    ask("order-1", other);
    ask("order-1", waiting(2s));
    scheduler.advance(500ms);
    first.settle(201, "order 1");
    scheduler.run_ready();
    ask("order-1");
    Asked& second = ask("order-2");
    scheduler.advance(12s);
    second.settle(402, "declined");
    scheduler.run_ready();
    Asked& third = ask("order-3");
    third.release();
    scheduler.run_ready();
    Asked& fourth = ask("order-4");
    fourth.mark_uncertain();
    scheduler.run_ready();
    ask("order-4");
    fourth.settle(201, "late");
    scheduler.run_ready();
    ask(start(), "order-5", takeover);
    clock.advance(4s);
    Asked& fifth = ask("order-5", takeover);
    faults().inject(Fault::refused, is_event<event::Settle>, 1);
    fifth.settle(201, "taken over", true);
    scheduler.advance(1s);
    faults().inject(Fault::refused, is_event<event::Claim>, 1);
    ask("order-6");
    engine().start_measuring(10s);
    scheduler.advance(11s);
    metrics.committed(1, 2ms);
    metrics.committed(64, 4ms);
    metrics.request_ended({"create-order", 201, "executed", "", 3ms});
    metrics.exchange_ended({true, 201, true, false, 2ms});
    metrics.connections(1);
    engine().drain({});
    scheduler.run_ready();
    ask("order-7");
  }
};

TEST_F(ScriptedRun, ScrapeEqualsTheCommittedFileLineByLine) {
  play();
  const std::string scrape = metrics.scrape();
  const std::string kept = ::testing::TempDir() + "scripted_run.prom";
  std::ofstream(kept) << scrape;
  SCOPED_TRACE("the whole scrape is in " + kept);
  std::istringstream expected(file(EINMAL_SCRIPTED_RUN)), scraped(scrape);
  std::string want, got;
  int line = 0;
  while (std::getline(expected, want)) {
    ++line;
    ASSERT_TRUE(std::getline(scraped, got)) << "ends before line " << line;
    EXPECT_EQ(got, want) << "line " << line;
  }
  EXPECT_FALSE(std::getline(scraped, got)) << "more than expected: " << got;
}

std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  std::set<std::string> out;
  const std::regex expression(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
    out.insert((*at)[1]);
  }
  return out;
}

TEST_F(ScriptedRun, EveryMetricIsOnTheMetricsPageAndNoOther) {
  play();
  metrics.request_ended({"create-order", 409, "mismatch", "key-reused", 3ms});
  EXPECT_EQ(matches(metrics.scrape(), "# TYPE (einmal_[a-z_]+) "),
            matches(file(EINMAL_DOCS "/metrics.md"), "\\| `(einmal_[a-z_]+)"));
}

TEST_F(ScriptedRun, AlertsAndDashboardNameOnlyWhatIsMeasured) {
  const auto known = matches(file(EINMAL_DOCS "/metrics.md"), "\\| `(einmal_[a-z_]+)");
  for (const char* name : {"/prometheus/alerts.yml", "/prometheus/dashboard.json"}) {
    const auto used = matches(file(std::string(EINMAL_DOCS) + name), "\\b(einmal_[a-z_]+)");
    EXPECT_GE(used.size(), 5u) << name;
    for (std::string metric : used) {
      if (metric.ends_with("_bucket")) metric.resize(metric.size() - 7);
      EXPECT_TRUE(known.contains(metric)) << name << ": " << metric;
    }
  }
}

TEST_F(ScriptedRun, NoKeyCallerOrBodyIsInAnyLine) {
  play();
  const std::string scraped = metrics.scrape();
  for (const char* secret : {"order-1", "alice", "declined", "order 1"}) {
    EXPECT_EQ(scraped.find(secret), std::string::npos) << secret;
  }
}

}  // namespace
}  // namespace einmal
