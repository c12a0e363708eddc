#include <set>

#include "einmal/engine/engine_fixture.hpp"

namespace einmal {
namespace {

using Wait = EngineTest;

const auto is_read = is_request<request::ReadScope>;
const auto is_claim = is_event<event::Claim>;

TEST_F(Wait, AWaiterHearsTheResultTheMomentItIsDurable) {
  Asked& owner = ask("K");
  Asked& waiter = ask("K", waiting(5s));
  scheduler.advance(2s);
  EXPECT_EQ(what(waiter), "nothing");
  const BootTime before = clock.boot_now();
  owner.settle(201, "order 7");
  scheduler.run_ready();
  EXPECT_EQ(clock.boot_now(), before);
  ASSERT_EQ(what(waiter), "replay");
  EXPECT_EQ(waiter.as<begun::Replay>().record->result->body, "order 7");
  EXPECT_EQ(observer().last_waited, Duration(2s));
}

TEST_F(Wait, AThousandWaitersOnOneKeyHearAtOnceFromOneAnswerAndNoReads) {
  limits.waiters = limits.waiters_per_key = 1000;
  Asked& owner = ask("K");
  std::vector<Asked*> waiters;
  for (int i = 0; i < 1000; ++i) waiters.push_back(&ask("K", waiting()));
  EXPECT_EQ(engine().load().waiters, 1000u);
  faults().forget_counts();
  owner.settle();
  scheduler.run_ready();
  for (Asked* waiter : waiters) ASSERT_EQ(what(*waiter), "replay");
  EXPECT_EQ(faults().count(is_read), 0u);
  // All of them are answered from one record, not from a thousand copies of its body.
  EXPECT_EQ(waiters[0]->as<begun::Replay>().record, waiters[999]->as<begun::Replay>().record);
  EXPECT_EQ(engine().load().waiters, 0u);
}

TEST_F(Wait, ReadsAreSharedByAllWaitersOfAKey) {
  limits.waiters = limits.waiters_per_key = 1000;
  Process& elsewhere = start(limits);
  ask(elsewhere, "K");
  Process& here = start(limits);
  for (int i = 0; i < 1000; ++i) begin(here, "K", waiting(10s));
  scheduler.run_ready();
  here.faults.forget_counts();
  scheduler.advance(5s);
  EXPECT_LE(here.faults.count(is_read), 30u);
  EXPECT_GE(here.faults.count(is_read), 8u);
}

TEST_F(Wait, AWaiterNeverClaimsAgainHoweverItEnds) {
  for (const char* end : {"settle", "release", "uncertain", "over"}) {
    const std::string key = end;
    Asked& owner = ask(key);
    Asked& waiter = ask(key, waiting(3s));
    faults().forget_counts();
    if (key == "settle") owner.settle();
    if (key == "release") owner.release();
    if (key == "uncertain") owner.mark_uncertain();
    scheduler.advance(4s);
    EXPECT_EQ(waiter.answers, 1);
    EXPECT_EQ(faults().count(is_claim), 0u) << key;
  }
}

TEST_F(Wait, AWaiterHoldsNothingOfTheStoreBetweenItsReads) {
  ask(start(), "K");
  Process& here = start();
  ask(here, "K", waiting());
  std::size_t at_store = 0;
  here.faults.inject(Fault::stalled, is_read);
  scheduler.advance(1s);
  at_store = here.faults.stalled();
  EXPECT_EQ(at_store, 1u) << "one read at a time, and none piles up behind it";
  here.faults.resume();
  scheduler.run_ready();
}

TEST_F(Wait, ForeignCompletionIsHeardWithinHalfASecondByPolling) {
  Asked& owner = ask(start(), "K");
  Asked& waiter = ask(start(), "K", waiting(30s));
  scheduler.advance(10s);
  owner.settle();
  scheduler.run_ready();
  EXPECT_EQ(what(waiter), "nothing");
  scheduler.advance(650ms);
  EXPECT_EQ(what(waiter), "replay");
}

TEST_F(Wait, AReleasedAttemptSendsAllItsWaitersAwaySpreadInTime) {
  Asked& owner = ask("K");
  std::vector<Asked*> waiters;
  for (int i = 0; i < 16; ++i) waiters.push_back(&ask("K", waiting()));
  faults().forget_counts();
  owner.release();
  scheduler.run_ready();
  std::set<Duration> delays;
  for (Asked* waiter : waiters) {
    ASSERT_EQ(what(*waiter), "released");
    const Duration delay = waiter->as<begun::Released>().retry_after;
    EXPECT_GE(delay, 1s);
    EXPECT_LE(delay, 3s);
    delays.insert(delay);
  }
  EXPECT_GT(delays.size(), 12u);
  EXPECT_EQ(condition("K"), Condition::absent) << "nobody took the key by waiting";
}

TEST_F(Wait, AFreedKeyIsReleasedToItsWaiters) {
  Asked& owner = ask("K");
  Asked& waiter = ask("K", waiting());
  operate("K", event::Resolve{owner.execution().record().generation,
                              event::Resolution::freed,
                              {},
                              SettledBy::operator_,
                              true});
  scheduler.advance(1s);
  EXPECT_EQ(what(waiter), "released");
}

TEST_F(Wait, AnUncertainOutcomeIsToldAtOnce) {
  Asked& owner = ask("K");
  Asked& waiter = ask("K", waiting());
  owner.mark_uncertain();
  scheduler.run_ready();
  EXPECT_EQ(what(waiter), "uncertain");
}

TEST_F(Wait, WhenTheWaitIsOverItIsInProgress) {
  Asked& owner = ask("K");
  Asked& waiter = ask("K", waiting(3s));
  scheduler.advance(3s - 1us);
  EXPECT_EQ(what(waiter), "nothing");
  scheduler.advance(1us);
  ASSERT_EQ(what(waiter), "in_progress");
  EXPECT_EQ(waiter.as<begun::InProgress>().operation_id, owner.execution().record().operation_id);
  owner.settle();
  scheduler.run_ready();
  EXPECT_EQ(waiter.answers, 1);
}

TEST_F(Wait, TheWaitCountsFromTheRequestNotFromTheAnswerOfASlowStore) {
  ask("K");
  faults().inject(Fault::stalled, is_claim);
  Asked& waiter = ask("K", waiting(3s));
  scheduler.advance(2s);
  faults().resume();
  scheduler.advance(1s);
  EXPECT_EQ(what(waiter), "in_progress");
}

TEST_F(Wait, AnotherBodyIsAMismatchAtOnceAlsoWhileOthersWait) {
  ask("K");
  ask("K", waiting());
  Asking other = waiting();
  other.body = "other";
  EXPECT_EQ(what(ask("K", other)), "mismatch");
}

TEST_F(Wait, TheQueueOfAKeyAndOfTheEngineAreBounded) {
  limits.waiters = 5;
  limits.waiters_per_key = 3;
  ask("K1");
  ask("K2");
  std::vector<std::string> answers;
  for (int i = 0; i < 4; ++i) answers.push_back(what(ask("K1", waiting())));
  EXPECT_EQ(answers,
            (std::vector<std::string>{"nothing", "nothing", "nothing", "too_many_waiters"}));
  answers.clear();
  for (int i = 0; i < 3; ++i) answers.push_back(what(ask("K2", waiting())));
  EXPECT_EQ(answers, (std::vector<std::string>{"nothing", "nothing", "too_many_waiters"}));
}

TEST_F(Wait, OneCallerCannotFillTheQueueOverManyKeys) {
  limits.waiters_per_caller = 2;
  for (const char* key : {"K1", "K2", "K3"}) ask(key);
  Asked& first = ask("K1", waiting());
  EXPECT_EQ(what(ask("K2", waiting())), "nothing");
  EXPECT_EQ(what(ask("K3", waiting())), "over_quota");
  Asking bob = waiting();
  bob.caller = "bob";
  Asked& owner = ask("K3", bob);
  EXPECT_EQ(what(owner), "execute");
  EXPECT_EQ(what(ask("K3", bob)), "nothing");
  engine().drop(first.ticket);
  EXPECT_EQ(what(ask("K3", waiting())), "nothing");
}

TEST_F(Wait, ADroppedWaiterFreesItsPlace) {
  limits.waiters_per_key = 1;
  Asked& owner = ask("K");
  Asked& gone = ask("K", waiting());
  EXPECT_EQ(what(ask("K", waiting())), "too_many_waiters");
  engine().drop(gone.ticket);
  Asked& next = ask("K", waiting());
  EXPECT_EQ(what(next), "nothing");
  owner.settle();
  scheduler.run_ready();
  EXPECT_EQ(what(next), "replay");
  EXPECT_EQ(gone.answers, 0);
  EXPECT_EQ(observer().count("begun dropped waited"), 1);
}

TEST_F(Wait, ALeaseThatEndsUnderTakeoverIsInProgressAndTheNextToArriveTakesOver) {
  Asking asking = waiting(20s);
  asking.on_lease_expiry = OnLeaseExpiry::takeover;
  asking.lease = 3s;
  Process& vanished = start();
  ask(vanished, "K", asking);
  vanished.crash();
  Process& here = start();
  Asked& waiter = ask(here, "K", asking);
  scheduler.advance(3s - 1ms);
  EXPECT_EQ(what(waiter), "nothing");
  scheduler.advance(10ms);
  EXPECT_EQ(what(waiter), "in_progress");
  EXPECT_EQ(stored("K")->record.attempts, 1u);
  Asked& arriving = ask(here, "K", asking);
  ASSERT_EQ(what(arriving), "execute");
  EXPECT_EQ(arriving.execution().record().attempts, 2u);
}

TEST_F(Wait, ALeaseThatEndsOtherwiseIsToldAsUncertain) {
  Process& vanished = start();
  Asking asking = waiting(20s);
  asking.lease = 3s;
  ask(vanished, "K", asking);
  vanished.crash();
  Process& here = start();
  Asked& waiter = ask(here, "K", asking);
  scheduler.advance(3s + 10ms);
  EXPECT_EQ(what(waiter), "uncertain");
  EXPECT_EQ(here.faults.count(is_claim), 1u);
  EXPECT_EQ(here.observer.count("overdue 1"), 1);
  EXPECT_EQ(here.observer.count("begun uncertain waited"), 1);
}

TEST_F(Wait, GoesOnWhenAnotherRequestTakesOverTheSameOperation) {
  Asking asking = waiting(20s);
  asking.on_lease_expiry = OnLeaseExpiry::takeover;
  asking.lease = 3s;
  Process& vanished = start();
  Process& here = start();
  Process& other = start();
  ask(vanished, "K", asking);
  vanished.crash();
  here.faults.inject(Fault::stalled, is_read, 1);
  Asked& waiter = ask(here, "K", asking);
  scheduler.advance(3s);
  Asked& successor = ask(other, "K", asking);
  ASSERT_EQ(what(successor), "execute");
  here.faults.resume();
  scheduler.run_ready();
  EXPECT_EQ(what(waiter), "nothing");
  successor.settle();
  scheduler.advance(1s);
  EXPECT_EQ(what(waiter), "replay");
}

TEST_F(Wait, AnAnswerThatOvertookTheWaiterIsNotMissed) {
  // The waiter's claim was answered "in progress", but the owner's settlement is heard first.
  Asked& owner = ask("K");
  faults().inject(Fault::stalled_after, is_claim);
  Asked& waiter = ask("K", waiting(10s));
  owner.settle();
  scheduler.run_ready();
  faults().resume();
  const BootTime before = clock.boot_now();
  scheduler.run_ready();
  EXPECT_EQ(what(waiter), "replay");
  EXPECT_EQ(clock.boot_now(), before);
}

TEST_F(Wait, NewsOfAnEarlierOperationOfTheKeyIsNoNews) {
  Asked& first = ask("K");
  faults().inject(Fault::doubt_done, is_event<event::Release>);
  first.release();
  scheduler.run_ready();
  Asked& second = ask(start(), "K");
  ASSERT_EQ(what(second), "execute");
  Asked& waiter = ask("K", waiting(30s));
  scheduler.advance(1s);
  EXPECT_EQ(how(first), "recorded");
  EXPECT_EQ(what(waiter), "nothing") << "it waits for the second attempt";
  second.settle();
  scheduler.advance(1s);
  EXPECT_EQ(what(waiter), "replay");
}

TEST_F(Wait, AReadFromBeforeItCameTellsAWaiterNothing) {
  // The first waiter's read sees the key free; before it is answered the key is claimed anew and
  // the second waiter waits for that attempt.
  Process& elsewhere = start();
  Process& here = start();
  Asked& first_owner = ask(elsewhere, "K");
  here.faults.inject(Fault::stalled_after, is_read);
  first_owner.release();
  const auto hold = [&] { return scheduler.run_ready(); };
  // The waiter's claim must still see the first attempt.
  here.faults.inject(Fault::stalled_after, is_claim);
  hold();
  Asked& second_owner = ask(elsewhere, "K");
  Asked& waiter = ask(here, "K", waiting(10s));
  here.faults.resume();  // claim: in progress with the second attempt; its read is held back
  hold();
  Asked& late = ask(here, "K", waiting(10s));
  second_owner.release();
  Asked& third_owner = ask(elsewhere, "K");
  ASSERT_EQ(what(third_owner), "execute");
  EXPECT_EQ(what(late), "nothing");
  here.faults.resume();
  scheduler.advance(1s);
  EXPECT_EQ(what(waiter), "released");
  EXPECT_EQ(what(late), "released");
  Asked& last = ask(here, "K", waiting(10s));
  third_owner.settle();
  scheduler.advance(1s);
  EXPECT_EQ(what(last), "replay");
}

TEST_F(Wait, AStoreThatFailsToReadLetsItGoOnWaiting) {
  Asked& owner = ask(start(), "K");
  Process& here = start();
  here.faults.inject(Fault::refused, is_read, FaultStore::forever);
  Asked& waiter = ask(here, "K", waiting(5s));
  owner.settle();
  scheduler.advance(2s);
  EXPECT_EQ(what(waiter), "nothing");
  here.faults.heal();
  scheduler.advance(1s);
  EXPECT_EQ(what(waiter), "replay");
}

TEST_F(Wait, AWaiterMayActOnTheEngineFromItsAnswer) {
  Asked& owner = ask("K");
  Asked& other = ask("K", waiting());
  Asked& third = ask("K", waiting());
  std::optional<Begun> again;
  engine().begin(request("K", waiting()), [&](Begun) {
    engine().drop(third.ticket);
    engine().begin(request("K", waiting()), [&](Begun answer) { again = std::move(answer); });
  });
  Asked& last = ask("K", waiting());
  owner.settle();
  scheduler.run_ready();
  EXPECT_EQ(what(other), "replay");
  EXPECT_EQ(what(last), "replay");
  EXPECT_EQ(third.answers, 1) << "it heard before the one that dropped it";
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(std::holds_alternative<begun::Replay>(*again));
}

/// A memory store that says it announces changes, and announces when told to.
class AnnouncingStore final : public Store {
 public:
  explicit AnnouncingStore(Store& inner) : inner_(inner) {
    capabilities_ = inner.capabilities();
    capabilities_.announces_changes = true;
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  void submit(Command& command) override {
    reads += is_read(command.request()) ? 1 : 0;
    inner_.submit(command);
  }
  const Bytes& digest_secret() const override { return inner_.digest_secret(); }
  void on_foreign_change(std::function<void()> listener) override {
    announce = std::move(listener);
  }
  void await_foreign_changes(bool wanted) override { awaited = wanted; }

  std::function<void()> announce;
  bool awaited = false;
  int reads = 0;

 private:
  Store& inner_;
  Capabilities capabilities_;
};

class AnnouncedWait : public EngineTest {
 protected:
  void begin(const std::string& key) {
    engine_->begin(request(key, waiting(60s)), [this](Begun answer) {
      ++answers_;
      last_ = std::move(answer);
    });
    scheduler.run_ready();
  }
  AnnouncingStore announcing_{store};
  RecordingObserver log_;
  std::optional<Engine> engine_{std::in_place, announcing_, scheduler,     clock,
                                random,        log_,        EngineLimits{}};
  int answers_ = 0;
  std::optional<Begun> last_;
};

TEST_F(AnnouncedWait, AForeignChangeIsLookedAtWithinMilliseconds) {
  Asked& owner = ask(start(), "K");
  EXPECT_FALSE(announcing_.awaited);
  begin("K");
  EXPECT_TRUE(announcing_.awaited);
  scheduler.advance(20s);
  EXPECT_LE(announcing_.reads, 30) << "polling is slow where changes are announced";
  owner.settle();
  scheduler.run_ready();
  announcing_.announce();
  scheduler.advance(20ms);
  EXPECT_EQ(answers_, 1);
  EXPECT_FALSE(announcing_.awaited);
}

TEST_F(AnnouncedWait, AStoreThatChangesAllTheTimeIsNotReadAllTheTime) {
  Process& elsewhere = start();
  for (int i = 0; i < 100; ++i) {
    ask(elsewhere, "K" + std::to_string(i));
    begin("K" + std::to_string(i));
  }
  announcing_.reads = 0;
  for (int i = 0; i < 1000; ++i) {
    announcing_.announce();
    scheduler.advance(1ms);
  }
  EXPECT_LE(announcing_.reads, 11000);
  EXPECT_GE(announcing_.reads, 2000);
  EXPECT_EQ(answers_, 0);
}

}  // namespace
}  // namespace einmal
