#include <set>

#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

using Begin = EngineTest;

TEST_F(Begin, FirstRequestExecutesAndItsRepetitionIsReplayed) {
  Asked& first = ask("K");
  ASSERT_EQ(what(first), "execute");
  EXPECT_EQ(first.execution().record().attempts, 1u);
  EXPECT_EQ(first.execution().scope().key(), "K");
  first.settle(201, "order 7");
  scheduler.run_ready();
  EXPECT_EQ(how(first), "recorded");

  Asked& second = ask("K");
  ASSERT_EQ(what(second), "replay");
  EXPECT_EQ(second.as<begun::Replay>().record->result->body, "order 7");
  EXPECT_FALSE(second.as<begun::Replay>().resolved);
}

TEST_F(Begin, IsNeverAnsweredInsideTheCall) {
  Asked& asked = begin(process(), "K");
  EXPECT_EQ(asked.answers, 0);
  engine().drain({});
  Asked& refused = begin(process(), "K2");
  EXPECT_EQ(refused.answers, 0);
  scheduler.run_ready();
  EXPECT_EQ(asked.answers, 1);
  EXPECT_EQ(what(refused), "draining");
}

TEST_F(Begin, AnotherBodyIsAMismatchWhileProcessingUncertainAndSettled) {
  Asking other;
  other.body = "other";
  Asked& first = ask("K");
  EXPECT_EQ(what(ask("K", other)), "mismatch");
  first.mark_uncertain();
  scheduler.run_ready();
  EXPECT_EQ(what(ask("K", other)), "mismatch");
  first.settle();
  scheduler.run_ready();
  Asked& late = ask("K", other);
  ASSERT_EQ(what(late), "mismatch");
  EXPECT_EQ(late.as<begun::Mismatch>().operation_id, first.execution().record().operation_id);
  EXPECT_EQ(what(ask("K")), "replay");
}

TEST_F(Begin, ADuplicateIsTurnedAwayAtOnceUnderReject) {
  ask("K");
  const BootTime before = clock.boot_now();
  Asked& second = ask("K");
  EXPECT_EQ(what(second), "in_progress");
  EXPECT_EQ(clock.boot_now(), before);
}

TEST_F(Begin, ADuplicateIsToldTheOperationAtOnceUnderOperation) {
  Asked& first = ask("K");
  Asking asking;
  asking.in_flight = InFlight::operation;
  Asked& second = ask("K", asking);
  ASSERT_EQ(what(second), "in_progress");
  EXPECT_EQ(second.as<begun::InProgress>().operation_id, first.execution().record().operation_id);
}

TEST_F(Begin, RetryAfterIsTheAgeOfTheAttemptWithinBoundsAndJittered) {
  Asking asking;
  asking.lease = 60s;
  const auto retry_after = [&](Duration age) {
    const std::string key = "K" + std::to_string(age.count());
    Asked& owner = ask(key, asking);
    scheduler.advance(age);
    std::set<Duration> seen;
    for (int i = 0; i < 50; ++i) {
      seen.insert(ask(key, asking).as<begun::InProgress>().retry_after);
    }
    EXPECT_GT(seen.size(), 10u) << "no jitter";
    owner.release();
    scheduler.run_ready();
    return std::pair(*seen.begin(), *seen.rbegin());
  };
  auto [low, high] = retry_after(100ms);
  EXPECT_GE(low, 750ms);
  EXPECT_LE(high, 1250ms);
  std::tie(low, high) = retry_after(6s);
  EXPECT_GE(low, 4500ms);
  EXPECT_LE(high, 7500ms);
  std::tie(low, high) = retry_after(50s);
  EXPECT_GE(low, 7500ms);
  EXPECT_LE(high, 12500ms);
}

TEST_F(Begin, RetryAfterDoesNotReachBeyondTheLease) {
  Asking asking;
  asking.lease = 12s;
  ask("K", asking);
  faults().inject(Fault::refused, is_event<event::Renew>, FaultStore::forever);
  scheduler.advance(9s);
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(ask("K", asking).as<begun::InProgress>().retry_after, 3750ms);
  }
}

TEST_F(Begin, AnUncertainRecordIsAnsweredUncertainHoweverMuchTimePasses) {
  ask("K").mark_uncertain();
  scheduler.run_ready();
  EXPECT_EQ(what(ask("K")), "uncertain");
  scheduler.advance(24h * 400);
  Asked& later = ask("K");
  ASSERT_EQ(what(later), "uncertain");
  EXPECT_EQ(later.as<begun::Uncertain>().record->cause, UncertainCause::outcome_unknown);
}

TEST_F(Begin, ARequestThatFindsTheLeaseOverMakesItUncertainAndIsReportedAsTheOneThatDid) {
  Process& vanished = start();
  ask(vanished, "K");
  vanished.crash();
  scheduler.advance(30s);
  Process& here = start();
  EXPECT_EQ(what(ask(here, "K")), "uncertain");
  EXPECT_EQ(what(ask(here, "K")), "uncertain");
  EXPECT_EQ(here.observer.lines,
            (std::vector<std::string>{"begun uncertain entered", "begun uncertain"}));
}

TEST_F(Begin, ExpiryIsExactAtLookUpWithoutAnySweep) {
  Asking asking;
  asking.retention = 2s;
  ask("K", asking).settle();
  scheduler.run_ready();
  scheduler.advance(2s - 1us);
  EXPECT_EQ(what(ask("K", asking)), "replay");
  scheduler.advance(1us);
  EXPECT_EQ(what(ask("K", asking)), "execute");
}

TEST_F(Begin, ATombstoneAnswersGone) {
  Asking asking;
  asking.retention = 2s;
  asking.after_expiry = AfterExpiry::refuse;
  ask("K", asking).settle();
  scheduler.run_ready();
  scheduler.advance(2s);
  EXPECT_EQ(what(ask("K", asking)), "gone");
}

TEST_F(Begin, AReplayOfWhatAnOperatorResolvedSaysSo) {
  Asked& owner = ask("K");
  owner.mark_uncertain();
  scheduler.run_ready();
  StoredResult result;
  result.status = 201;
  operate("K", event::Resolve{owner.execution().record().generation, event::Resolution::completed,
                              result, SettledBy::operator_, false});
  Asked& repeat = ask("K");
  ASSERT_EQ(what(repeat), "replay");
  EXPECT_TRUE(repeat.as<begun::Replay>().resolved);
  EXPECT_EQ(observer().count("begun replay resolved"), 1);
}

TEST_F(Begin, AKeyReleasedOrFreedExecutesAnewUnderANewOperation) {
  Asked& first = ask("K");
  const Record released = first.execution().record();
  first.release();
  scheduler.run_ready();
  Asked& second = ask("K");
  ASSERT_EQ(what(second), "execute");
  EXPECT_NE(second.execution().record().operation_id, released.operation_id);
  EXPECT_GT(number(second.execution().record().generation), number(released.generation));
}

TEST_F(Begin, AnswersThatCameTogetherWakeTheThreadOnce) {
  limits.live_per_caller = limits.uncertain_per_caller = 0;
  faults().inject(Fault::stalled_after, is_event<event::Claim>, 500);
  std::vector<Asked*> asked;
  for (int i = 0; i < 500; ++i) asked.push_back(&ask("K" + std::to_string(i)));
  const auto posts = scheduler.posts();
  faults().resume();
  EXPECT_EQ(scheduler.posts(), posts + 1);
  scheduler.run_ready();
  for (Asked* one : asked) EXPECT_EQ(what(*one), "execute");
  EXPECT_EQ(scheduler.posts(), posts + 1);
}

// --- profiles

TEST_F(Begin, AnotherProfileIsRecomputedAndNeverAMismatch) {
  ask("K").settle();
  scheduler.run_ready();
  Asking newer;
  newer.profile = "v2";
  EXPECT_EQ(what(ask("K", newer)), "replay");
  newer.body = "other";
  EXPECT_EQ(what(ask("K", newer)), "mismatch");
}

TEST_F(Begin, AProfileIsReadFromTheStoreOnce) {
  ask("K").settle();
  scheduler.run_ready();
  Asking newer;
  newer.profile = "v2";
  ask("K", newer);
  ask("K", newer);
  EXPECT_EQ(faults().count(is_request<request::ReadProfile>), 1u);
}

TEST_F(Begin, AProfileThisBuildCannotComputeIsIncomparableNotAMismatch) {
  ask("K").settle();
  scheduler.run_ready();
  Asking newer;
  newer.profile = "v2";
  newer.known_profiles = {"v2"};
  EXPECT_EQ(what(ask("K", newer)), "incomparable");
  EXPECT_EQ(condition("K"), Condition::completed);
}

TEST_F(Begin, AStoreThatFailsToNameTheProfileIsUnavailable) {
  ask("K").settle();
  scheduler.run_ready();
  faults().inject(Fault::refused, is_request<request::ReadProfile>);
  Asking newer;
  newer.profile = "v2";
  EXPECT_EQ(what(ask("K", newer)), "unavailable");
  faults().inject(Fault::stalled, is_request<request::ReadProfile>);
  Asked& stalled = ask("K", newer);
  EXPECT_EQ(what(stalled), "nothing");
  scheduler.advance(5s);
  EXPECT_EQ(what(stalled), "unavailable");
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(stalled.answers, 1);
}

// --- generations

/// Hands out generations as a store would that lost its last commits.
Step forgetful(const std::optional<Record>& record, const Event& event, const Now& now) {
  Event changed = event;
  if (auto* claim = std::get_if<event::Claim>(&changed)) claim->generation = Generation{1};
  return decide(record, changed, now);
}

TEST_F(Begin, AStoreThatHandsOutALowerGenerationIsClaimedNoMore) {
  MemoryOptions options;
  options.decide = forgetful;
  MemoryStore broken(clock, random, options);
  RecordingObserver log;
  Engine engine(broken, scheduler, clock, random, log, {});
  std::vector<std::optional<Begun>> answers(3);
  const auto begin = [&](std::size_t i) {
    engine.begin(request("K" + std::to_string(i)),
                 [&answers, i](Begun answer) { answers[i] = std::move(answer); });
    scheduler.run_ready();
  };
  begin(0);
  EXPECT_TRUE(std::holds_alternative<begun::Execute>(*answers[0]));
  begin(1);
  EXPECT_EQ(std::get<begun::Unavailable>(*answers[1]).error.code, ErrorCode::corrupt);
  EXPECT_EQ(log.count("alarm generation_regressed"), 1);
  begin(2);
  EXPECT_TRUE(std::holds_alternative<begun::Unavailable>(*answers[2]));
  // The claim of the refused generation went back.
  const auto left = einmal::ask(broken, request::ReadScope{scope("K1"), true});
  EXPECT_FALSE(std::get<answer::Found>(*left).record.has_value());
  answers.clear();
}

TEST_F(Begin, GenerationsThatBecomeVisibleOutOfOrderAreNoAlarm) {
  // K1 draws its generation first and is answered last, as commits on PostgreSQL may be.
  faults().inject(Fault::stalled_after, is_event<event::Claim>);
  Asked& first = ask("K1");
  Asked& second = ask("K2");
  ASSERT_EQ(what(second), "execute");
  faults().resume();
  scheduler.run_ready();
  ASSERT_EQ(what(first), "execute");
  EXPECT_LT(number(first.execution().record().generation),
            number(second.execution().record().generation));
  EXPECT_EQ(observer().count("alarm generation_regressed"), 0);
}

// --- observation

TEST_F(Begin, EachBeginIsReportedOnce) {
  Asked& owner = ask("K");
  ask("K");
  owner.settle();
  scheduler.run_ready();
  ask("K");
  EXPECT_EQ(observer().lines,
            (std::vector<std::string>{"begun execute", "begun in_progress",
                                      "finished complete recorded", "begun replay"}));
  EXPECT_EQ(observer().points,
            (std::vector<std::string>{"claim_submitted", "claim_durable", "claim_submitted",
                                      "settle_submitted", "settle_durable", "claim_submitted"}));
}

}  // namespace
}  // namespace einmal
