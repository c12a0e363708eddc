#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

class Quota : public EngineTest {
 protected:
  Quota() {
    limits.live_per_caller = 3;
    limits.uncertain_per_caller = 2;
  }
  std::size_t counts() { return faults().count(is_request<request::CountCaller>); }
};

TEST_F(Quota, ACallerWithTooManyLiveRecordsIsTurnedAwayForNewKeysOnly) {
  for (const char* key : {"K1", "K2", "K3"}) {
    Asked& owner = ask(key);
    ASSERT_EQ(what(owner), "execute") << key;
    owner.settle();
    scheduler.run_ready();
  }
  Asked& refused = ask("K4");
  ASSERT_EQ(what(refused), "over_quota");
  EXPECT_GE(refused.as<begun::OverQuota>().retry_after, 7500ms);
  EXPECT_EQ(condition("K4"), Condition::absent);
  EXPECT_EQ(what(ask("K2")), "replay") << "a repeat is never over";
  Asking bob;
  bob.caller = "bob";
  EXPECT_EQ(what(ask("K4", bob)), "execute") << "another caller is another account";
}

TEST_F(Quota, UncertainRecordsHaveALimitOfTheirOwn) {
  for (const char* key : {"K1", "K2"}) {
    ask(key).mark_uncertain();
    scheduler.run_ready();
  }
  EXPECT_EQ(what(ask("K3")), "over_quota");
  EXPECT_EQ(what(ask("K1")), "uncertain");
}

TEST_F(Quota, ThereIsRoomAgainWhenRecordsGoHoweverTheyGo) {
  Asking brief;
  brief.retention = 5s;
  for (const char* key : {"K1", "K2"}) {
    ask(key, brief).settle();
    scheduler.run_ready();
  }
  Asked& third = ask("K3");
  EXPECT_EQ(what(ask("K4")), "over_quota");
  third.release();
  scheduler.run_ready();
  EXPECT_EQ(what(ask("K4")), "execute");
  EXPECT_EQ(what(ask("K5")), "over_quota");
  scheduler.advance(6s);
  EXPECT_EQ(what(ask("K5")), "execute") << "two expired";
}

TEST_F(Quota, RecordsOfOtherProcessesAndFromBeforeCount) {
  Process& before = start(limits);
  for (const char* key : {"K1", "K2", "K3"}) ask(before, key);
  before.crash();
  EXPECT_EQ(what(ask(start(limits), "K4")), "over_quota");
}

TEST_F(Quota, ATombstoneIsARepeatAndAnExpiredRecordIsNot) {
  Asking asking;
  asking.retention = 2s;
  ask("K1", asking).settle();
  asking.after_expiry = AfterExpiry::refuse;
  ask("K2", asking).settle();
  scheduler.run_ready();
  scheduler.advance(2s);
  for (const char* key : {"K3", "K4"}) ASSERT_EQ(what(ask(key)), "execute");
  EXPECT_EQ(what(ask("K1", asking)), "over_quota");
  EXPECT_EQ(what(ask("K2", asking)), "gone");
}

TEST_F(Quota, AStoreThatDoesNotCountRefusesNobody) {
  faults().inject(Fault::refused, is_request<request::CountCaller>, FaultStore::forever);
  EXPECT_EQ(what(ask("K1")), "execute");
  faults().heal();
  faults().inject(Fault::stalled, is_request<request::ReadScope>);
  Asking bob;
  bob.caller = "bob";
  Asked& stalled = ask("K1", bob);
  scheduler.advance(5s);
  EXPECT_EQ(what(stalled), "unavailable");
  faults().resume();
  scheduler.run_ready();
  EXPECT_EQ(stalled.answers, 1);
  EXPECT_EQ(stored("K1", bob), std::nullopt);
}

TEST_F(Quota, CanBeAskedBeforeTheBodyIsRead) {
  std::optional<bool> over;
  const auto check = [&](const std::string& key) {
    over.reset();
    engine().check_quota(
        scope(key), [&](std::optional<begun::OverQuota> verdict) { over = verdict.has_value(); });
    EXPECT_FALSE(over.has_value());
    scheduler.run_ready();
    return over.value();
  };
  EXPECT_FALSE(check("K1"));
  for (const char* key : {"K1", "K2", "K3"}) ask(key);
  EXPECT_FALSE(check("K1"));
  EXPECT_TRUE(check("K4"));
}

TEST_F(Quota, ManyRequestsFarBelowTheLimitCostAHandfulOfCounts) {
  limits.live_per_caller = 1'000'000;
  limits.uncertain_per_caller = 1000;
  for (int i = 0; i < 10000; ++i) {
    ask("K" + std::to_string(i)).settle();
    scheduler.run_ready();
  }
  EXPECT_LE(counts(), 3u);
  EXPECT_GE(counts(), 1u);
  EXPECT_EQ(faults().count(is_request<request::ReadScope>), 0u);
}

TEST_F(Quota, IsReachedExactlyByOneProcessAlone) {
  limits.live_per_caller = 100;
  int executed = 0;
  for (int i = 0; i < 150; ++i) executed += what(ask("K" + std::to_string(i))) == "execute";
  EXPECT_EQ(executed, 100);
}

TEST_F(Quota, NoLimitAsksNothing) {
  limits.live_per_caller = limits.uncertain_per_caller = 0;
  for (int i = 0; i < 200; ++i) ASSERT_EQ(what(ask("K" + std::to_string(i))), "execute");
  EXPECT_EQ(counts(), 0u);
}

TEST_F(Quota, CallersWithoutNumberAreForgottenNotKept) {
  limits.live_per_caller = 1'000'000;
  Asking asking;
  for (int i = 0; i < 20000; ++i) {
    asking.caller = "caller" + std::to_string(i);
    ask("K", asking).release();
    scheduler.run_ready();
  }
  asking.caller = "caller0";
  EXPECT_EQ(what(ask("K", asking)), "execute");
}

}  // namespace
}  // namespace einmal
