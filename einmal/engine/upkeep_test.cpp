#include <set>

#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

using Upkeep = EngineTest;

TEST_F(Upkeep, ExpiredRecordsAreRemovedInBoundedBatches) {
  Asking asking;
  asking.retention = 2s;
  std::vector<Asked*> owners;
  for (int i = 0; i < 450; ++i)
    owners.push_back(&begin(process(), "K" + std::to_string(i), asking));
  scheduler.run_ready();
  for (Asked* owner : owners) owner->settle();
  scheduler.run_ready();
  scheduler.advance(2s);
  EXPECT_TRUE(stored("K7").has_value());

  engine().start_sweeping(10s);
  scheduler.advance(20s);
  EXPECT_FALSE(stored("K7").has_value());
  EXPECT_EQ(observer().count("swept 200 0"), 2);
  EXPECT_EQ(observer().count("swept 50 0"), 1);
}

TEST_F(Upkeep, OverdueRecordsBecomeUncertainWithoutAnybodyAsking) {
  Process& vanished = start();
  ask(vanished, "K");
  vanished.crash();
  Process& here = start();
  here.engine->start_sweeping(10s);
  scheduler.advance(45s);
  EXPECT_EQ(condition("K"), Condition::uncertain);
  EXPECT_EQ(here.observer.count("overdue 1"), 1);
}

TEST_F(Upkeep, ProcessingAndUncertainAreNeverSwept) {
  Asking forever;
  forever.lease.reset();
  ask("processing", forever);
  ask("uncertain").mark_uncertain();
  scheduler.run_ready();
  engine().start_sweeping(1h);
  scheduler.advance(24h * 100);
  EXPECT_EQ(condition("processing"), Condition::processing);
  EXPECT_EQ(condition("uncertain"), Condition::uncertain);
}

TEST_F(Upkeep, RoundsAreSpreadSoThatProcessesDoNotSweepTogether) {
  engine().start_sweeping(60s);
  std::set<Duration> gaps;
  std::size_t seen = 0;
  BootTime last = clock.boot_now();
  for (int i = 0; i < 1200; ++i) {
    scheduler.advance(1s);
    const std::size_t now = faults().count(is_request<request::Overdue>);
    if (now == seen) continue;
    seen = now;
    gaps.insert(clock.boot_now() - last);
    last = clock.boot_now();
  }
  EXPECT_GE(seen, 15u);
  EXPECT_LE(seen, 28u);
  EXPECT_GT(gaps.size(), 5u);
}

TEST_F(Upkeep, AStoreThatFailsIsSweptTheNextTime) {
  Asking asking;
  asking.retention = 2s;
  ask("K", asking).settle();
  scheduler.run_ready();
  faults().inject(Fault::refused, is_request<request::Overdue>, 2);
  faults().inject(Fault::refused, is_request<request::Sweep>, 2);
  engine().start_sweeping(10s);
  scheduler.advance(100s);
  EXPECT_FALSE(stored("K").has_value());
}

TEST_F(Upkeep, MeasuresTheStoreFromTimeToTime) {
  ask("K");
  engine().start_measuring(10s);
  scheduler.advance(100s);
  EXPECT_GE(observer().count("measured 1"), 7);
  EXPECT_LE(observer().count("measured 1"), 14);
}

TEST_F(Upkeep, AWallClockThatJumpedAheadRaisesAnAlarmOnceUntilItIsWellAgain) {
  ask("K").settle();
  scheduler.run_ready();
  engine().start_measuring(10s);
  scheduler.advance(20s);
  clock.jump_wall(48h);
  scheduler.advance(60s);
  EXPECT_EQ(observer().count("alarm expiry_paused"), 1);
  EXPECT_EQ(what(ask("K")), "replay") << "replaying too long is safe, too short is not";
  einmal::ask(store, request::AcceptTime{{"operator", "NTP was right"}}).value();
  EXPECT_EQ(what(ask("K")), "execute");
  scheduler.advance(60s);
  clock.jump_wall(48h);
  scheduler.advance(60s);
  EXPECT_EQ(observer().count("alarm expiry_paused"), 2);
}

TEST_F(Upkeep, AnyOtherRequestIsAnsweredOnTheEnginesThread) {
  ask("K");
  std::optional<std::uint64_t> live;
  engine().ask(request::CountCaller{"gateway", "alice"},
               [&](Result<Answer> answer) { live = std::get<answer::CallerCount>(*answer).live; });
  EXPECT_FALSE(live.has_value());
  scheduler.run_ready();
  EXPECT_EQ(live, 1u);
}

}  // namespace
}  // namespace einmal
