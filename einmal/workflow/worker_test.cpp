#include "einmal/workflow/worker.hpp"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "einmal/core/derived_key.hpp"
#include "einmal/workflow/journal.hpp"
#include "einmal/workflow/workflow_fixture.hpp"

namespace einmal::workflow {
namespace {

struct Killed {};

/// Ends the worker's run at the nth point, as a kill would: by nothing that it could catch as an
/// exception of a step.
class KillAt final : public Observer {
 public:
  explicit KillAt(int nth) : left_(nth) {}
  void at(Point point, const OperationId&, std::string_view) override {
    seen_.push_back(point);
    if (--left_ == 0) throw Killed{};
  }
  const std::vector<Point>& seen() const { return seen_; }

 private:
  int left_;
  std::vector<Point> seen_;
};

TEST_F(WorkflowTest, RunsItsStepsInOrderAndSettlesTheRecord) {
  std::vector<std::string> calls;
  const auto step = [&](const char* name) {
    return external(name, in_doubt::Resend{},
                    [&calls](const StepContext& context, OutsideCall& call) -> ExternalOutcome {
                      EXPECT_TRUE(call.first_byte());
                      EXPECT_EQ(context.input(), "order 7");
                      calls.push_back(context.derived_key());
                      return said::Done{"out" + std::to_string(calls.size()), {}};
                    });
  };
  auto definition = definition_of({step("charge"), step("ship")});
  definition.finish = [](const StepContext& context) {
    return result_of(201, *context.output("charge") + *context.output("ship"));
  };
  const auto worker_ = worker({definition});
  const OperationId id = start_one("k");
  EXPECT_EQ(condition("k"), Condition::processing);
  EXPECT_TRUE(*worker_->run_one());
  EXPECT_FALSE(*worker_->run_one());
  EXPECT_EQ(calls, (std::vector<std::string>{derive_key(scope_of("k"), "charge"),
                                             derive_key(scope_of("k"), "ship")}));
  const auto again = start(store_, random_, a_start("k"));
  EXPECT_EQ(std::get<started::Replay>(*again).record.result->body, "out1out2");
  const auto ended = wait_for_end(store_, clock_, id, 0s);
  EXPECT_EQ((*ended)->state, State::completed);
}

TEST_F(WorkflowTest, OfOtherBodyOrStillRunningIsToldSo) {
  const OperationId id = start_one("k");
  const auto again = start(store_, random_, a_start("k"));
  EXPECT_EQ(std::get<started::Accepted>(*again).id, id);
  EXPECT_FALSE(std::get<started::Accepted>(*again).first);
  auto other = a_start("k");
  other.fingerprint.digest[0] = 1;
  EXPECT_TRUE(std::holds_alternative<started::Mismatch>(*start(store_, random_, other)));
  EXPECT_FALSE(wait_for_end(store_, clock_, id, 0s)->has_value());
}

TEST_F(WorkflowTest, GoesOnAfterBeingKilledAtEveryPointWithOneEffectPerDerivedKey) {
  std::set<Point> killed_at;
  for (int nth = 1;; ++nth) {
    const std::string key = "k" + std::to_string(nth);
    std::map<std::string, int> effects;  // by derived key: what an idempotent provider counts
    const auto pay =
        external("pay", in_doubt::Resend{},
                 [&](const StepContext& context, OutsideCall& call) -> ExternalOutcome {
                   EXPECT_TRUE(call.first_byte());
                   effects.emplace(context.derived_key(), 1);
                   return said::Done{"paid", {{"mail/1", "receipt", "to alice"}}};
                 });
    const auto send =
        external("send", in_doubt::Resend{},
                 [&](const StepContext& context, OutsideCall& call) -> ExternalOutcome {
                   EXPECT_TRUE(call.first_byte());
                   effects.emplace(context.derived_key(), 1);
                   return said::Done{};
                 });
    const std::vector<Definition> definitions{definition_of({pay}),
                                              definition_of({send}, 1, "mail")};
    start_one(key);
    KillAt kill(nth);
    const auto first = worker(definitions, kill);
    bool killed = false;
    try {
      while (*first->run_one()) {
      }
    } catch (const Killed&) {
      killed = true;
      killed_at.insert(kill.seen().back());
    }
    const auto second = worker(definitions);
    run_for(*second, 2min, 1s);
    EXPECT_EQ(condition(key), Condition::completed) << name(kill.seen().back());
    const auto counts = ask(store_, request::CountWorkflows{});
    EXPECT_TRUE(std::get<answer::WorkflowCounts>(*counts).definitions.empty());
    EXPECT_EQ(effects.size(), 2u) << name(kill.seen().back());
    EXPECT_TRUE(effects.contains(derive_key(scope_of(key), "pay")));
    EXPECT_TRUE(effects.contains(derive_key(scope_of(key), "receipt/send")));
    if (!killed) break;
  }
  EXPECT_TRUE(killed_at.contains(Point::intent_durable));
  EXPECT_TRUE(killed_at.contains(Point::call_ended));
  EXPECT_TRUE(killed_at.contains(Point::result_durable));
  EXPECT_TRUE(killed_at.contains(Point::finishing));
  EXPECT_TRUE(killed_at.contains(Point::finished));
}

TEST_F(WorkflowTest, AStepThatThrowsIsInDoubtAndStopsUnlessToldOtherwise) {
  const auto worker_ = worker({definition_of({external(
      "pay", in_doubt::Stop{}, [](const StepContext&, OutsideCall& call) -> ExternalOutcome {
        EXPECT_TRUE(call.first_byte());
        throw std::runtime_error("connection reset");
      })})});
  const OperationId id = start_one("k");
  run_for(*worker_, 1h, 10s);
  EXPECT_EQ(condition("k"), Condition::uncertain);
  EXPECT_TRUE(row(id)->stopped);
  EXPECT_TRUE(std::holds_alternative<started::Uncertain>(*start(store_, random_, a_start("k"))));
}

TEST_F(WorkflowTest, APersonSettlesTheStepInDoubtAndTheWorkflowGoesOn) {
  int calls = 0;
  auto definition = definition_of(
      {external("pay", in_doubt::Stop{}, [&](const StepContext&, OutsideCall&) -> ExternalOutcome {
        ++calls;
        return said::Unknown{"timeout"};
      })});
  definition.finish = [](const StepContext& context) {
    return result_of(201, *context.output("pay"));
  };
  const auto worker_ = worker({definition});
  const OperationId id = start_one("k");
  run_for(*worker_, 1s);
  const auto stopped = *row(id);
  EXPECT_FALSE(settle_step(store_, id, stopped.fence, "ship", "x"));
  EXPECT_FALSE(settle_step(store_, id, stopped.fence + 1, "pay", "x"));
  EXPECT_EQ(*settle_step(store_, id, stopped.fence, "pay", "payment 9"), answer::Advanced::done);
  run_for(*worker_, 1s);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(std::get<started::Replay>(*start(store_, random_, a_start("k"))).record.result->body,
            "payment 9");
}

TEST_F(WorkflowTest, AReconcilerIsAskedOnlyWhenQuiescenceHasPassed) {
  int sent = 0;
  std::vector<BootTime> asked;
  BootTime first_sent{};
  const in_doubt::Reconcile how{[&](const StepContext&) -> in_doubt::Found {
                                  asked.push_back(clock_.boot_now());
                                  if (asked.size() == 1) return said::Unknown{"503"};
                                  return in_doubt::Absent{};
                                },
                                5min, 20};
  const auto worker_ = worker({definition_of(
      {external("pay", how, [&](const StepContext&, OutsideCall& call) -> ExternalOutcome {
        EXPECT_TRUE(call.first_byte());
        if (++sent == 1) {
          first_sent = clock_.boot_now();
          return said::Unknown{"timeout"};
        }
        return said::Done{"paid", {}};
      })})});
  start_one("k");
  run_for(*worker_, 10min, 1s);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_GE(asked[0] - first_sent, 5min + 10s);
  EXPECT_EQ(sent, 2);
  EXPECT_EQ(condition("k"), Condition::completed);
}

TEST_F(WorkflowTest, AReconcilerThatNeverKnowsEndsInUncertain) {
  int asked = 0;
  const in_doubt::Reconcile how{[&](const StepContext&) -> in_doubt::Found {
                                  ++asked;
                                  throw std::runtime_error("no route");
                                },
                                0s, 4};
  const auto worker_ = worker({definition_of(
      {external("pay", how, [&](const StepContext&, OutsideCall&) -> ExternalOutcome {
        return said::Unknown{"timeout"};
      })})});
  start_one("k");
  run_for(*worker_, 1h, 1s);
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(condition("k"), Condition::uncertain);
}

TEST_F(WorkflowTest, ARefusalIsTheFailedResultOfTheOperation) {
  const auto worker_ = worker({definition_of(
      {external("pay", in_doubt::Stop{}, [](const StepContext&, OutsideCall&) -> ExternalOutcome {
        return said::Refused{result_of(402, "card declined")};
      })})});
  start_one("k");
  run_for(*worker_, 1s);
  const auto replay = std::get<started::Replay>(*start(store_, random_, a_start("k")));
  EXPECT_EQ(replay.record.state, State::failed);
  EXPECT_EQ(replay.record.result->body, "card declined");
}

TEST_F(WorkflowTest, ThatCertainlyNeverDidAnythingIsReleasedInTheEnd) {
  int calls = 0;
  auto step = external("pay", in_doubt::Stop{},
                       [&](const StepContext&, OutsideCall& call) -> ExternalOutcome {
                         ++calls;
                         return said::NotNow{*call.nothing_sent()};
                       });
  step.attempts = 4;
  const auto worker_ = worker({definition_of({step})});
  start_one("k");
  run_for(*worker_, 1h, 1s);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(condition("k"), Condition::absent);
}

TEST_F(WorkflowTest, OfAnUnknownVersionIsLeftToOthersAndCounted) {
  int of_old = 0, of_new = 0;
  const auto counting = [](int& calls) {
    return external("pay", in_doubt::Resend{},
                    [&calls](const StepContext&, OutsideCall&) -> ExternalOutcome {
                      ++calls;
                      return said::Done{};
                    });
  };
  const auto old_one = worker({definition_of({counting(of_old)}, 1)});
  const auto new_one = worker({definition_of({counting(of_new)}, 2)});
  start_one("old", "refund/1");
  start_one("new", "refund/2");
  run_for(*new_one, 1min, 1s);
  EXPECT_EQ(of_new, 1);
  EXPECT_EQ(of_old, 0);
  const auto counts = ask(store_, request::CountWorkflows{});
  using Of = answer::WorkflowCounts::OfDefinition;
  EXPECT_EQ(std::get<answer::WorkflowCounts>(*counts).definitions,
            (std::vector<Of>{Of{"refund/1", 1, 1, 0}}));
  run_for(*old_one, 1s);
  EXPECT_EQ(of_old, 1);
}

TEST_F(WorkflowTest, AWorkerThatComesTooLateSendsNothingAndChangesNothing) {
  // The first worker sleeps (as by SIGSTOP) between its durable intent and its first byte; the
  // second one takes over meanwhile.
  int sent = 0;
  std::unique_ptr<Worker> second;
  bool nested = false;
  const auto pay = external("pay", in_doubt::Resend{},
                            [&](const StepContext&, OutsideCall& call) -> ExternalOutcome {
                              if (!std::exchange(nested, true)) {
                                clock_.advance(20s);
                                EXPECT_TRUE(*second->run_one());
                              }
                              if (!call.first_byte()) return said::NotNow{*call.nothing_sent()};
                              ++sent;
                              return said::Done{"paid " + std::to_string(sent), {}};
                            });
  KillAt watch(1000);
  const auto first = worker({definition_of({pay})}, watch);
  second = worker({definition_of({pay})});
  start_one("k");
  EXPECT_TRUE(*first->run_one());
  EXPECT_EQ(sent, 1);
  EXPECT_EQ(watch.seen().back(), Point::lost);
  EXPECT_EQ(condition("k"), Condition::completed);
}

TEST_F(WorkflowTest, WorkersRefuseDefinitionsThatCannotBeMeant) {
  const auto refused = [&](Definition definition) {
    const auto made = Worker::make(store_, clock_, random_, dependencies_, {definition}, nullptr);
    return !made && made.error().code == ErrorCode::invalid;
  };
  const auto step =
      external("pay", in_doubt::Stop{},
               [](const StepContext&, OutsideCall&) -> ExternalOutcome { return said::Done{}; });
  EXPECT_TRUE(refused(definition_of({step, step})));
  auto slashed = step;
  slashed.name = "a/b";
  EXPECT_TRUE(refused(definition_of({slashed})));
  EXPECT_TRUE(refused(definition_of({LocalStep{"write", {}}})));
  EXPECT_TRUE(refused(definition_of({step}, 1, "")));
}

}  // namespace
}  // namespace einmal::workflow
