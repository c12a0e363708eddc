#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "einmal/testing/store_contract_helpers.hpp"

/// What the port promises beyond one command after another: batches, threads, reopening, the clock.
namespace einmal::testing {
namespace {

// --- batches and threads

/// Collects the answers of commands that were submitted together.
class Together {
 public:
  class One final : public Command {
   public:
    One(Together& together, Request request) : Command(std::move(request)), together_(together) {}
    void completed(Result<Answer> answer) noexcept override {
      // The last of all: whoever waits destroys this as soon as it is counted.
      const std::lock_guard lock(together_.mutex_);
      answer_.emplace(std::move(answer));
      ++together_.answered_;
      together_.arrived_.notify_one();
    }
    const Result<Answer>& answer() const { return *answer_; }

   private:
    Together& together_;
    std::optional<Result<Answer>> answer_;
  };

  void add(Request request) {
    commands_.push_back(std::make_unique<One>(*this, std::move(request)));
  }
  void submit(Store& store) {
    for (const auto& command : commands_) store.submit(*command);
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return answered_ == commands_.size(); });
  }
  const Result<Answer>& answer(std::size_t at) const { return commands_[at]->answer(); }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::size_t answered_ = 0;
  std::vector<std::unique_ptr<One>> commands_;
};

TEST_P(StoreContract, LetsOneFailingCommandFailNoOther) {
  Together together;
  for (int i = 0; i < 40; ++i) {
    event::Claim claim = claim_by(OwnerToken::draw(random()), random());
    if (i % 10 == 3) claim.policies.retention = -1s;
    together.add(transition(StoreScript::scope("k" + std::to_string(i)), claim));
  }
  together.submit(store());
  for (std::size_t i = 0; i < 40; ++i) {
    const auto& answer = together.answer(i);
    EXPECT_EQ(answer.has_value(), i % 10 != 3);
    EXPECT_EQ(condition_of("k" + std::to_string(i)), i % 10 != 3 ? "processing" : "absent");
  }
}

TEST_P(StoreContract, DecidesCommandsOfOneKeyInOneBatchOneAfterAnother) {
  Together together;
  const Scope scope = StoreScript::scope("k");
  for (int i = 0; i < 20; ++i)
    together.add(transition(scope, claim_by(OwnerToken::draw(random()), random())));
  together.submit(store());
  int executed = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    const auto& decision = std::get<Decision>(*together.answer(i));
    if (std::holds_alternative<decision::Execute>(decision))
      ++executed;
    else
      EXPECT_TRUE(std::holds_alternative<decision::InProgress>(decision));
  }
  EXPECT_EQ(executed, 1);
}

/// How many of 16 threads that claim one key at once are told to execute.
int claim_from_many_threads(const std::vector<Store*>& stores, const Scope& scope, Random& random) {
  std::atomic<int> executed = 0, waiting = 16;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      if (execute(*stores[i % stores.size()], scope, random)) ++executed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return executed;
}

TEST_P(StoreContract, LetsOneOfSixteenThreadsExecuteAKeyThatIsNewReleasedFreedOrExpired) {
  const Scope scope = StoreScript::scope("k");
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(claim_from_many_threads({&store()}, scope, random()), 1);
    const Record record = read(store(), scope)->record;
    if (round % 2 == 0) {
      settle(store(), scope, record, created());
      clock().advance(1h);
    } else {
      ASSERT_TRUE(ask_transition(
          store(), transition(scope, event::Release{record.generation, record.owner})));
    }
  }
}

TEST_P(StoreContract, LetsOneProcessExecuteWhenSeveralHaveTheStoreOpen) {
  if (!GetParam().several_at_once) GTEST_SKIP() << "this store is opened by one process at a time";
  const auto other = home().open();
  for (int round = 0; round < 5; ++round) {
    const Scope scope = StoreScript::scope("k" + std::to_string(round));
    EXPECT_EQ(claim_from_many_threads({&store(), other.get()}, scope, random()), 1);
    const Record record = read(store(), scope)->record;
    EXPECT_EQ(read(*other, scope)->record, record);
    settle(*other, scope, record, created());
    EXPECT_EQ(read(store(), scope)->condition, Condition::completed);
  }
}

/// Counts calls, and waits for the next one far longer than it should take.
class Bell {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    ++rung_;
    heard_.notify_all();
  }
  bool rings_again() {
    std::unique_lock lock(mutex_);
    const int before = rung_;
    return heard_.wait_for(lock, 20s, [&] { return rung_ > before; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable heard_;
  int rung_ = 0;
};

TEST_P(StoreContract, TellsWhoAwaitsItOfWhatAnotherProcessChanged) {
  if (!GetParam().tells_of_foreign_changes) GTEST_SKIP() << "nobody else can change this store";
  const auto other = home().open();
  Bell bell;
  store().on_foreign_change([&] { bell.ring(); });
  store().await_foreign_changes(true);
  // An announcement may be lost (it is a hint); of many changes one is heard.
  std::atomic<bool> heard = false;
  std::thread changing([&] {
    for (int i = 0; i < 1000 && !heard; ++i) {
      const Scope scope = StoreScript::scope("k" + std::to_string(i));
      settle(*other, scope, *execute(*other, scope, random()), created());
    }
  });
  const bool rang = bell.rings_again();
  heard = true;
  changing.join();
  EXPECT_TRUE(rang);
  store().await_foreign_changes(false);
  store().on_foreign_change({});
}

// --- reopening

TEST_P(StoreContract, HasADigestSecretOf32BytesThatIsItsOwn) {
  EXPECT_EQ(store().digest_secret().size(), 32u);
  VirtualClock another_clock;
  const auto another_home = GetParam().make(another_clock);
  EXPECT_NE(another_home->open()->digest_secret(), store().digest_secret());
}

TEST_P(StoreContract, FindsEverythingAgainWhenItIsReopened) {
  if (!GetParam().survives_reopen) GTEST_SKIP() << "this store keeps nothing when it is closed";
  play("claim done a; complete done a 201; claim open a; claim unknown a; mark unknown a seen=502");
  play(
      "claim free a; mark free a; resolve free freed; claim gone a refuse=9h; complete gone a 201");
  const Bytes secret = store().digest_secret();
  std::vector<StoredRecord> before;
  for (const std::string key : {"done", "open", "unknown", "free", "gone"})
    before.push_back(*read(store(), StoreScript::scope(key)));
  const auto audit = expect_answer<answer::AuditRows>(store(), request::ReadAudit{}).rows;
  reopen();
  EXPECT_EQ(store().digest_secret(), secret);
  for (const StoredRecord& stored : before) EXPECT_EQ(read(store(), stored.scope), stored);
  EXPECT_EQ(expect_answer<answer::AuditRows>(store(), request::ReadAudit{}).rows, audit);
  EXPECT_TRUE(
      expect_answer<answer::FoundProfile>(store(), request::ReadProfile{StoreScript::profile(1).id})
          .definition);
}

TEST_P(StoreContract, FindsLeasesOverAfterAReboot) {
  if (GetParam().leases_on_wall_clock) GTEST_SKIP() << "its leases do not know of a boot";
  if (!GetParam().survives_reopen) GTEST_SKIP() << "this store keeps nothing when it is closed";
  EXPECT_TRUE(play("claim k a; reboot; claim k b").starts_with("uncertain"));
  EXPECT_TRUE(
      play("claim k2 a takeover; reboot; claim k2 b takeover").starts_with("execute takeover"));
  EXPECT_TRUE(play("claim k3 a; reboot; overdue").starts_with("moved changed=1"));
  EXPECT_TRUE(play("claim k4 a lease=none; reboot; claim k4 b").starts_with("in-progress"));
}

// --- the clock

TEST_P(StoreContract, ReplaysOnAndSweepsNothingWhenTheWallClockJumpedAheadUntilItAgreesAgain) {
  if (!GetParam().guards_wall_clock) GTEST_SKIP() << "this store does not guard its wall clock";
  play("claim k a; complete k a 201; jump 2h");
  EXPECT_TRUE(play("claim k b").starts_with("replay"));
  EXPECT_TRUE(play("sweep").starts_with("moved changed=0"));
  EXPECT_TRUE(expect_answer<answer::Stats>(store(), request::Stats{}).expiry_paused);
  play("wait 30m; jump -2h");
  EXPECT_FALSE(expect_answer<answer::Stats>(store(), request::Stats{}).expiry_paused);
  EXPECT_TRUE(play("claim k b").starts_with("replay"));
  EXPECT_TRUE(play("wait 30m; claim k b").starts_with("execute"));
}

TEST_P(StoreContract, ExpiresAgainOnceAnOperatorAcceptedTheJump) {
  if (!GetParam().guards_wall_clock) GTEST_SKIP() << "this store does not guard its wall clock";
  play("claim k a; complete k a 201; jump 2h; claim k b");
  if (GetParam().survives_reopen) reopen();
  EXPECT_TRUE(play("claim k b").starts_with("replay"));
  EXPECT_EQ(play("accept-time"), "done");
  EXPECT_FALSE(expect_answer<answer::Stats>(store(), request::Stats{}).expiry_paused);
  EXPECT_TRUE(play("claim k b").starts_with("execute"));
  const auto rows = expect_answer<answer::AuditRows>(store(), request::ReadAudit{}).rows;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].audit.event, AuditEvent::time_accepted);
}

TEST_P(StoreContract, DoesNotLengthenALeaseWhenTheWallClockGoesBack) {
  EXPECT_TRUE(play("claim k a; jump -9000h; claim k b").starts_with("in-progress"));
  EXPECT_TRUE(play("wait 30s; claim k b").starts_with("uncertain"));
}

}  // namespace
}  // namespace einmal::testing
