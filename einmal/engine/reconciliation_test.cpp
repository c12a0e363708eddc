#include <deque>
#include <set>

#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

/// Says what a test scripted, and notes when it was asked.
class ScriptedReconciler final : public Reconciler {
 public:
  explicit ScriptedReconciler(testing::VirtualScheduler& scheduler, const Clock& clock)
      : scheduler_(scheduler), clock_(clock) {}

  std::optional<ReconcileRules> rules(const Scope& scope) override {
    if (scope.key() == "not-mine") return std::nullopt;
    return given;
  }
  void ask(const StoredRecord& record, std::function<void(OutcomeFinding)> done) override {
    asked.push_back(clock_.boot_now());
    keys.push_back(record.scope.key());
    at_once_ = std::max(at_once_, ++running_);
    scheduler_.run_after(takes, [this, done = std::move(done)] {
      --running_;
      OutcomeFinding said = next.empty() ? always : next.front();
      if (!next.empty()) next.pop_front();
      done(std::move(said));
    });
  }
  std::size_t most_at_once() const { return at_once_; }

  ReconcileRules given{"create-order", std::nullopt, 1s, 5min, 20};
  Duration takes = 10ms;
  std::deque<OutcomeFinding> next;
  OutcomeFinding always;
  std::vector<BootTime> asked;
  std::vector<std::string> keys;

 private:
  testing::VirtualScheduler& scheduler_;
  const Clock& clock_;
  std::size_t running_ = 0, at_once_ = 0;
};

StoredResult result(int status, std::string body) {
  StoredResult made;
  made.status = status;
  made.body = std::move(body);
  return made;
}

class Reconciliation : public EngineTest {
 protected:
  void make_uncertain(const std::string& key) {
    ask(key).mark_uncertain();
    scheduler.run_ready();
    ASSERT_EQ(condition(key), Condition::uncertain);
  }
  void start_reconciling() { engine().start_reconciling(reconciler, "gateway", 1s); }
  std::vector<AuditRow> audit(const std::string& key) {
    const auto rows = einmal::ask(store, request::ReadAudit{scope(key), std::nullopt, 100});
    return std::get<answer::AuditRows>(*rows).rows;
  }

  ScriptedReconciler reconciler{scheduler, clock};
};

TEST_F(Reconciliation, WhatWasDoneIsReplayedAsResolvedWithARowInTheAudit) {
  make_uncertain("K");
  reconciler.next = {{finding::Completed{result(201, "made")}, "GET /orders: 200"}};
  start_reconciling();
  scheduler.advance(5s);
  auto& repeat = ask("K");
  ASSERT_EQ(what(repeat), "replay");
  EXPECT_TRUE(repeat.as<begun::Replay>().resolved);
  EXPECT_EQ(repeat.as<begun::Replay>().record->result->body, "made");
  EXPECT_EQ(observer().count("reconciled completed"), 1);
  const auto rows = audit("K");
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.back().actor.who, "reconciler:create-order");
  EXPECT_EQ(rows.back().actor.evidence, "GET /orders: 200");
  EXPECT_EQ(reconciler.asked.size(), 1U) << "and nobody asks again";
}

TEST_F(Reconciliation, ARefusalIsStoredAsOne) {
  make_uncertain("K");
  reconciler.next = {{finding::Failed{result(402, "declined")}, "asked"}};
  start_reconciling();
  scheduler.advance(5s);
  EXPECT_EQ(condition("K"), Condition::failed);
}

TEST_F(Reconciliation, WhatIsAbsentIsFreedOnlyByAQuestionAskedAfterQuiescence) {
  make_uncertain("K");
  reconciler.given.quiescence = 60s;
  reconciler.always = {finding::Absent{}, "GET /orders: 404"};
  start_reconciling();
  scheduler.advance(55s);
  EXPECT_EQ(condition("K"), Condition::uncertain);
  const auto before = reconciler.asked.size();
  EXPECT_GE(before, 1U);
  scheduler.advance(20s);
  EXPECT_EQ(condition("K"), Condition::absent);
  EXPECT_GT(reconciler.asked.size(), before) << "what was absent before was asked again";
  EXPECT_EQ(observer().count("reconciled freed"), 1);
  EXPECT_EQ(what(ask("K")), "execute");
}

TEST_F(Reconciliation, AQuestionThatWasUnderWayWhenQuiescenceEndedFreesNothing) {
  make_uncertain("K");
  reconciler.given.quiescence = 60s;
  reconciler.given.first_delay = 1ms;
  reconciler.takes = 90s;
  reconciler.always = {finding::Absent{}, "GET /orders: 404"};
  start_reconciling();
  scheduler.advance(100s);
  EXPECT_EQ(condition("K"), Condition::uncertain);
  EXPECT_EQ(observer().count("reconciled freed"), 0);
  scheduler.advance(200s);
  EXPECT_EQ(observer().count("reconciled freed"), 1);
}

TEST_F(Reconciliation, WithoutQuiescenceAbsentFreesNothingEver) {
  make_uncertain("K");
  reconciler.always = {finding::Absent{}, "404"};
  start_reconciling();
  scheduler.advance(24h);
  EXPECT_EQ(condition("K"), Condition::uncertain);
}

TEST_F(Reconciliation, WhatAppearsDuringQuiescenceIsCompleted) {
  make_uncertain("K");
  reconciler.given.quiescence = 60s;
  reconciler.next = {{finding::Absent{}, "404"}, {finding::Completed{result(201, "made")}, "200"}};
  start_reconciling();
  scheduler.advance(90s);
  EXPECT_EQ(condition("K"), Condition::completed);
}

TEST_F(Reconciliation, WhatIsAbsentIsAskedForAgainAllThroughALongQuiescence) {
  make_uncertain("K");
  reconciler.given.quiescence = 24h;
  for (int i = 0; i < 30; ++i) reconciler.next.push_back({finding::Absent{}, "404"});
  reconciler.always = {finding::Completed{result(201, "made")}, "200"};
  start_reconciling();
  scheduler.advance(6h);
  EXPECT_EQ(condition("K"), Condition::completed) << "long before it could have been freed";
  EXPECT_EQ(observer().count("alarm reconciliation_given_up"), 0);
}

TEST_F(Reconciliation, WhatStaysUnknownIsAskedLessAndLessAndThenAlarmed) {
  make_uncertain("K");
  reconciler.given.tries = 6;
  start_reconciling();
  scheduler.advance(24h);
  EXPECT_EQ(reconciler.asked.size(), 6U);
  EXPECT_EQ(observer().count("alarm reconciliation_given_up"), 1);
  EXPECT_EQ(condition("K"), Condition::uncertain);
  for (std::size_t i = 1; i < reconciler.asked.size(); ++i) {
    // Full jitter: between nothing and the doubled delay, and the next look of the timer.
    EXPECT_LE(reconciler.asked[i] - reconciler.asked[i - 1], 1s * (1 << i) + 1s) << i;
  }
}

TEST_F(Reconciliation, ManyAreAskedAFewAtATimeAndNotInStep) {
  for (int i = 0; i < 300; ++i) make_uncertain("K" + std::to_string(i));
  reconciler.given.first_delay = 30s;
  reconciler.given.tries = 3;
  start_reconciling();
  scheduler.advance(10min);
  EXPECT_LE(reconciler.most_at_once(), 8U);
  EXPECT_EQ(reconciler.asked.size(), 900U);
  std::map<std::int64_t, int> by_second;
  for (const auto at : reconciler.asked)
    ++by_second[std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count()];
  for (const auto& [second, count] : by_second) EXPECT_LE(count, 40) << second;
}

TEST_F(Reconciliation, ManyThatBecomeQuietTogetherAreNotAskedAtOneInstant) {
  for (int i = 0; i < 300; ++i) make_uncertain("K" + std::to_string(i));
  reconciler.given.quiescence = 60s;
  reconciler.given.first_delay = 10s;
  reconciler.takes = 1ms;
  reconciler.always = {finding::Absent{}, "404"};
  start_reconciling();
  scheduler.advance(90s);
  EXPECT_EQ(observer().count("reconciled freed"), 300);
  std::map<std::int64_t, int> by_second;
  for (const auto at : reconciler.asked)
    ++by_second[std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count()];
  for (const auto& [second, count] : by_second) EXPECT_LE(count, 100) << second;
}

TEST_F(Reconciliation, SettlesNothingThatAnOwnerOrOperatorSettledMeanwhile) {
  auto& owner = ask("late");
  owner.mark_uncertain();
  make_uncertain("resolved");
  reconciler.takes = 10s;
  reconciler.always = {finding::Completed{result(201, "from the reconciler")}, "200"};
  start_reconciling();
  scheduler.advance(3s);
  EXPECT_EQ(reconciler.asked.size(), 2U);
  owner.settle(201, "from the owner");
  scheduler.run_ready();
  const auto generation = stored("resolved")->record.generation;
  event::Resolve resolve;
  resolve.generation = generation;
  resolve.result = result(201, "from the operator");
  operate("resolved", resolve);
  scheduler.advance(30s);
  EXPECT_EQ(stored("late")->record.result->body, "from the owner");
  EXPECT_EQ(stored("resolved")->record.result->body, "from the operator");
  EXPECT_EQ(observer().count("reconciled changed"), 2);
}

TEST_F(Reconciliation, AnOwnerThatCompletesAfterwardsIsALateResultAndAnAlarmWhereItContradicts) {
  auto& owner = ask("K");
  owner.mark_uncertain();
  scheduler.run_ready();
  reconciler.next = {{finding::Failed{result(402, "declined")}, "410"}};
  start_reconciling();
  scheduler.advance(5s);
  EXPECT_EQ(condition("K"), Condition::failed);
  owner.settle(201, "made after all");
  scheduler.run_ready();
  EXPECT_EQ(condition("K"), Condition::failed);
  EXPECT_EQ(observer().count("late_result contradicts"), 1);
}

TEST_F(Reconciliation, GoesOnAfterARestartFromTheStoreAlone) {
  make_uncertain("K");
  start_reconciling();
  scheduler.advance(3s);
  process().crash();
  auto& next = start();
  reconciler.always = {finding::Completed{result(201, "made")}, "200"};
  next.engine->start_reconciling(reconciler, "gateway", 1s);
  scheduler.advance(5s);
  EXPECT_EQ(condition("K"), Condition::completed);
}

TEST_F(Reconciliation, OfTwoProcessesOneSettles) {
  make_uncertain("K");
  auto& other = start();
  reconciler.always = {finding::Completed{result(201, "made")}, "200"};
  start_reconciling();
  other.engine->start_reconciling(reconciler, "gateway", 1s);
  scheduler.advance(10s);
  EXPECT_EQ(condition("K"), Condition::completed);
  EXPECT_EQ(observer().count("reconciled completed") + other.observer.count("reconciled completed"),
            1);
}

TEST_F(Reconciliation, TriesAgainWhenTheStoreFails) {
  make_uncertain("K");
  reconciler.given.longest_delay = 10s;
  reconciler.always = {finding::Completed{result(201, "made")}, "200"};
  faults().inject(Fault::refused, is_event<event::Resolve>, 1);
  start_reconciling();
  scheduler.advance(5s);
  scheduler.advance(60s);
  EXPECT_EQ(condition("K"), Condition::completed);
}

TEST_F(Reconciliation, LeavesWhatIsNotItsOwnAndWhatIsNotUncertainAlone) {
  make_uncertain("not-mine");
  ask("processing");
  ask("settled").settle();
  scheduler.run_ready();
  start_reconciling();
  scheduler.advance(20s);
  EXPECT_TRUE(reconciler.asked.empty());
}

TEST_F(Reconciliation, AnAnswerThatComesAfterTheEngineIsGoneIsDropped) {
  make_uncertain("K");
  reconciler.takes = 10s;
  reconciler.always = {finding::Completed{result(201, "made")}, "200"};
  start_reconciling();
  scheduler.advance(3s);
  ASSERT_EQ(reconciler.asked.size(), 1U);
  process().crash();
  scheduler.advance(30s);
  EXPECT_EQ(condition("K"), Condition::uncertain);
}

}  // namespace
}  // namespace einmal
