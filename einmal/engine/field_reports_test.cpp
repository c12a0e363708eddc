#include <map>

#include "einmal/engine/engine_fixture.hpp"

// Faults from practice, on the level of the engine. The gateway plays them again over sockets.

namespace einmal {
namespace {

class FieldReport : public EngineTest {
 protected:
  std::map<std::string, int> outcomes() {
    std::map<std::string, int> counts;
    for (const std::string& line : observer().lines) ++counts[line];
    return counts;
  }
  void at(Duration time) { scheduler.advance(began_ + time - clock.boot_now()); }
  BootTime began_ = clock.boot_now();
};

// C01: the refused duplicate deletes the owner's record.
TEST_F(FieldReport, C01ARefusedDuplicateLeavesTheOwnersRecordAlone) {
  Asking other;
  other.body = "qty 2";
  Asked& a = ask("K");
  at(500ms);
  EXPECT_EQ(what(ask("K")), "in_progress");
  at(1s);
  EXPECT_EQ(what(ask("K", other)), "mismatch");
  at(1500ms);
  Asked& d = begin(process(), "K");
  engine().drop(d.ticket);
  at(2s);
  EXPECT_EQ(what(ask("K")), "in_progress");
  at(3s);
  a.settle(201, "A");
  at(3500ms);
  EXPECT_EQ(ask("K").as<begun::Replay>().record->result->body, "A");
  at(4s);
  EXPECT_EQ(what(ask("K", other)), "mismatch");
  at(4500ms);
  EXPECT_EQ(ask("K").as<begun::Replay>().record->result->body, "A");
  EXPECT_EQ(how(a), "recorded");
  EXPECT_EQ(outcomes(), (std::map<std::string, int>{{"begun execute", 1},
                                                    {"begun in_progress", 2},
                                                    {"begun mismatch", 2},
                                                    {"begun dropped", 1},
                                                    {"begun replay", 2},
                                                    {"finished complete recorded", 1}}));
}

TEST_F(FieldReport, C01WithBoundedWaitToo) {
  Asking other = waiting(1s);
  other.body = "qty 2";
  Asked& a = ask("K");
  at(500ms);
  Asked& b = ask("K", waiting(1s));
  at(1s);
  EXPECT_EQ(what(ask("K", other)), "mismatch");
  at(1500ms);
  EXPECT_EQ(what(b), "in_progress");
  Asked& d = ask("K", waiting(1s));
  at(1600ms);
  engine().drop(d.ticket);
  at(2s);
  Asked& e = ask("K", waiting(5s));
  at(3s);
  a.settle(201, "A");
  scheduler.run_ready();
  EXPECT_EQ(what(e), "replay");
  EXPECT_EQ(how(a), "recorded");
  EXPECT_EQ(d.answers, 0);
  at(4s);
  EXPECT_EQ(what(ask("K", other)), "mismatch");
  EXPECT_EQ(what(ask("K", waiting(1s))), "replay");
  EXPECT_EQ(observer().count("begun execute"), 1);
}

// C02: "no deadline recorded" read as "abandoned".
TEST_F(FieldReport, C02NoLeaseIsUnknownNeverElapsed) {
  Asking no_lease;
  no_lease.lease.reset();
  Asked& a = ask("K", no_lease);
  at(1s);
  EXPECT_EQ(what(ask("K", no_lease)), "in_progress");
  at(2s);
  Process& second = start();
  second.engine->start_sweeping(100ms);
  at(3s);
  Asking takeover = no_lease;
  takeover.on_lease_expiry = OnLeaseExpiry::takeover;
  EXPECT_EQ(what(ask(second, "K", takeover)), "in_progress");
  at(5s);
  a.settle();
  at(6s);
  EXPECT_EQ(what(ask(second, "K", no_lease)), "replay");
}

TEST_F(FieldReport, C02AnOwnerThatVanishedWithoutALeaseIsVisibleAndOnlyAnOperatorEndsIt) {
  Asking no_lease;
  no_lease.lease.reset();
  Process& vanished = start();
  Asked& owner = ask(vanished, "K2", no_lease);
  const Generation generation = owner.execution().record().generation;
  vanished.crash();
  Process& restarted = start();
  restarted.engine->start_sweeping(1h);
  scheduler.advance(24h * 90);
  EXPECT_EQ(what(ask(restarted, "K2", no_lease)), "in_progress");
  auto stats = einmal::ask(store, request::Stats{});
  EXPECT_GE(*std::get<answer::Stats>(*stats).oldest_processing, 24h * 90);
  operate("K2", event::Doubt{generation});
  EXPECT_EQ(what(ask(restarted, "K2", no_lease)), "uncertain");
  operate("K2",
          event::Resolve{generation, event::Resolution::freed, {}, SettledBy::operator_, false});
  EXPECT_EQ(what(ask(restarted, "K2", no_lease)), "execute");
}

// C03: the late heartbeat steals the job back.
class C03 : public FieldReport {
 protected:
  C03() {
    asking_.lease = 1s;
    asking_.on_lease_expiry = OnLeaseExpiry::takeover;
  }

  /// A claims and is stopped; B takes over at 1.3 s; A goes on at 2.5 s.
  void play() {
    Process& a = start();
    a_ = &ask(a, "K", asking_);
    a_->execution().on_lost([this] { ++cancelled_; });
    // Stopped: its heartbeats reach the store only when it goes on.
    a.faults.inject(Fault::stalled, is_event<event::Renew>, FaultStore::forever);
    scheduler.advance(1300ms);
    Process& b = start();
    b_ = &ask(b, "K", asking_);
    ASSERT_EQ(what(*b_), "execute");
    EXPECT_EQ(number(b_->execution().record().generation), 2u);
    EXPECT_EQ(b_->execution().record().operation_id, a_->execution().record().operation_id);
    EXPECT_EQ(b.observer.count("begun execute takeover"), 1);
    scheduler.advance(1200ms);
    a.faults.heal();
    a.faults.resume();
    scheduler.run_ready();
    EXPECT_EQ(cancelled_, 1);
  }
  void b_completes() {
    scheduler.advance(2800ms);
    b_->settle(201, "B");
    scheduler.run_ready();
    EXPECT_EQ(how(*b_), "recorded");
    EXPECT_EQ(ask("K", asking_).as<begun::Replay>().record->result->body, "B");
    EXPECT_EQ(stored("K")->record.generation, Generation{2});
    EXPECT_EQ(observer().count("ownership_lost"), 1);
  }

  Asking asking_;
  Asked* a_ = nullptr;
  Asked* b_ = nullptr;
  int cancelled_ = 0;
};

TEST_F(C03, ALateHeartbeatIsLostAndStealsNothing) {
  play();
  scheduler.advance(1s);
  EXPECT_EQ(cancelled_, 1);
  EXPECT_FALSE(a_->execution().may_send());
  b_completes();
}

TEST_F(C03, ALateResultIsLostAndPublishedNowhere) {
  play();
  a_->settle(201, "A");
  scheduler.run_ready();
  ASSERT_EQ(how(*a_), "lost");
  EXPECT_EQ(observer().count("late_result"), 1);
  b_completes();
}

TEST_F(C03, ALateReleaseIsLostAndFreesNothing) {
  play();
  a_->release();
  scheduler.run_ready();
  ASSERT_EQ(how(*a_), "lost");
  b_completes();
}

}  // namespace
}  // namespace einmal
