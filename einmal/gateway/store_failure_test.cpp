#include <atomic>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "einmal/gateway/gateway_fixture.hpp"
#include "einmal/testing/fault_vfs.hpp"

/// A store that stalls or fails, before the claim and after the effect.

namespace einmal::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FaultVfs;

/// Passes commands on to a store; claims, or the ends of attempts, stall or fail while it is told
/// so.
class FaultyStore final : public Store {
 public:
  enum class Mode { pass, stall, fail };

  explicit FaultyStore(Store& store) : store_(store) {}

  void claims(Mode mode) { set(claims_, mode); }
  void endings(Mode mode) { set(endings_, mode); }

  const Capabilities& capabilities() const override { return store_.capabilities(); }
  void submit(Command& command) override {
    {
      const std::lock_guard lock(mutex_);
      const auto* mode = mode_of(command);
      if (mode != nullptr && *mode == Mode::stall) {
        stalled_.push_back(&command);
        return;
      }
      if (mode == nullptr || *mode == Mode::pass) {
        store_.submit(command);
        return;
      }
    }
    command.completed(failure(ErrorCode::unavailable, "faulty store: told to fail"));
  }
  const Bytes& digest_secret() const override { return store_.digest_secret(); }
  void on_foreign_change(std::function<void()> listener) override {
    store_.on_foreign_change(std::move(listener));
  }
  void await_foreign_changes(bool wanted) override { store_.await_foreign_changes(wanted); }

 private:
  const Mode* mode_of(const Command& command) const {
    const auto* transition = std::get_if<request::Transition>(&command.request());
    if (transition == nullptr) return nullptr;
    if (std::holds_alternative<event::Claim>(transition->event)) return &claims_;
    return std::holds_alternative<event::Renew>(transition->event) ? nullptr : &endings_;
  }
  void set(Mode& which, Mode mode) {
    std::deque<Command*> released;
    {
      const std::lock_guard lock(mutex_);
      which = mode;
      if (mode == Mode::pass) released.swap(stalled_);
    }
    for (auto* command : released) store_.submit(*command);
  }

  Store& store_;
  std::mutex mutex_;
  Mode claims_ = Mode::pass, endings_ = Mode::pass;
  std::deque<Command*> stalled_;
};

class StoreFailures : public GatewayTest {
 protected:
  StoreFailures() {
    operation().store_grace = milliseconds(300);
    real_ = open_sqlite_store(directory_.file("einmal.db"), {}, clock_, random_).value();
    faulty_ = std::make_unique<FaultyStore>(*real_);
  }
  ~StoreFailures() override {
    faulty_->claims(FaultyStore::Mode::pass);
    faulty_->endings(FaultyStore::Mode::pass);
    stop();
  }
  void start() { start_on(*faulty_); }

  std::unique_ptr<Store> real_;
  std::unique_ptr<FaultyStore> faulty_;
};

TEST_F(StoreFailures, BeforeTheClaimRefuseAndForwardNothing) {
  start();
  faulty_->claims(FaultyStore::Mode::fail);
  const auto refused = send_order("K1");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.member("reason"), "store-unavailable");
  EXPECT_FALSE(refused.header("Retry-After").empty());
  EXPECT_EQ(upstream_.begun(), 0U);
  faulty_->claims(FaultyStore::Mode::pass);
  EXPECT_EQ(send_order("K1").header("Idempotency-Status"), "executed");
}

TEST_F(StoreFailures, BeforeTheClaimArePassedOverWhereTheOperationChoseThat) {
  operation().on_store_failure = OnStoreFailure::open;
  start();
  faulty_->claims(FaultyStore::Mode::fail);
  const auto unprotected = send_order("K1");
  EXPECT_EQ(unprotected.status, 201);
  EXPECT_EQ(unprotected.header("Idempotency-Status"), "unprotected");
  EXPECT_EQ(upstream_.requests().front().count("Einmal-Fencing-Token"), 0U);
}

TEST_F(StoreFailures, AfterTheEffectDelayTheAnswerAtMostForTheGrace) {
  operation().store_grace = seconds(20);
  start();
  faulty_->endings(FaultyStore::Mode::stall);
  RawClient client(gateway_->port());
  client.send(order("K1"));
  EXPECT_TRUE(upstream_.wait_for(1));
  EXPECT_EQ(send_order("K1").member("reason"), "in-progress");
  faulty_->endings(FaultyStore::Mode::pass);
  EXPECT_EQ(client.read_answer().header("Idempotency-Status"), "executed");
}

TEST_F(StoreFailures, AfterTheEffectAreToldAsUnrecordedAndWrittenLater) {
  start();
  for (const auto mode : {FaultyStore::Mode::stall, FaultyStore::Mode::fail}) {
    const std::string key = mode == FaultyStore::Mode::stall ? "stalled" : "failed";
    faulty_->endings(mode);
    const auto first = send_order(key);
    EXPECT_EQ(first.status, 201);
    EXPECT_EQ(first.header("Idempotency-Status"), "unrecorded");
    EXPECT_EQ(send_order(key).member("reason"), "in-progress");
    faulty_->endings(FaultyStore::Mode::pass);
    HttpAnswer later;
    EXPECT_TRUE(eventually([&] {
      later = send_order(key);
      return later.header("Idempotency-Status") == "replayed";
    }));
    EXPECT_EQ(later.body, first.body);
    EXPECT_EQ(upstream_.effects(key), 1U);
  }
}

TEST_F(StoreFailures, AfterTheEffectAreUncertainWhereASecondForwardCouldExist) {
  operation().policies.on_lease_expiry = OnLeaseExpiry::takeover;
  start();
  faulty_->endings(FaultyStore::Mode::fail);
  const auto answer = send_order("K1");
  EXPECT_EQ(answer.status, 504);
  EXPECT_EQ(answer.member("reason"), "outcome-uncertain");
  EXPECT_EQ(answer.member("upstream_status"), "201");
}

TEST_F(StoreFailures, AfterTheEffectAreWrittenBeforeTheGatewayEnds) {
  start();
  faulty_->endings(FaultyStore::Mode::fail);
  const auto first = send_order("K1");
  EXPECT_EQ(first.header("Idempotency-Status"), "unrecorded");
  gateway_->begin_drain();
  faulty_->endings(FaultyStore::Mode::pass);
  thread_.join();
  gateway_.reset();
  start();
  EXPECT_EQ(send_order("K1").body, first.body);
  EXPECT_EQ(upstream_.effects("K1"), 1U);
}

/// A gateway on a file whose disk has ill days.
class IllDisk : public GatewayTest {
 protected:
  ~IllDisk() override {
    disk_.disarm();
    stop();
    file_.reset();
  }
  void start() {
    SqliteOptions options;
    options.vfs = disk_.name();
    file_ = open_sqlite_store(directory_.file("einmal.db"), options, clock_, random_).value();
    start_on(*file_);
  }

  FaultVfs disk_;
  std::unique_ptr<Store> file_;
};

TEST_F(IllDisk, ThatBecameReadOnlyIs503AndIsUsedAgainWithoutARestart) {
  operation().store_grace = milliseconds(300);
  start();
  const auto first = send_order("before");
  EXPECT_EQ(first.header("Idempotency-Status"), "executed");
  for (const auto operation : {FaultVfs::Operation::write, FaultVfs::Operation::sync}) {
    disk_.arm({operation, FaultVfs::Kind::io_error, 1, true, FaultVfs::File::any});
    const auto begun = upstream_.begun();
    const std::string kind = std::to_string(static_cast<int>(operation));
    std::vector<std::thread> clients;
    for (int i = 0; i < 5; ++i) {
      clients.emplace_back([&, i] {
        const auto refused = send_order("K" + kind + std::to_string(i));
        EXPECT_EQ(refused.status, 503);
        EXPECT_EQ(refused.member("reason"), "store-unavailable");
        EXPECT_FALSE(refused.header("Retry-After").empty());
      });
    }
    for (auto& client : clients) client.join();
    EXPECT_EQ(upstream_.begun(), begun) << "nothing was forwarded";
    // What needs no write is answered all the while.
    EXPECT_EQ(send_order("before").body, first.body);
    disk_.disarm();
    for (int i = 0; i < 5; ++i) {
      HttpAnswer answer;
      EXPECT_TRUE(eventually([&] {
        answer = send_order("K" + kind + std::to_string(i));
        return answer.status == 201;
      }));
      EXPECT_EQ(answer.header("Idempotency-Status"), "executed") << "the refusal left no claim";
    }
  }
}

TEST_F(IllDisk, ThatTakesTwoSecondsACommitLosesNothingAndRunsNothingTwice) {
  constexpr std::size_t n = 64;
  start();
  disk_.arm({FaultVfs::Operation::sync, FaultVfs::Kind::stall, 1, true, FaultVfs::File::wal});
  std::atomic<bool> over{false};
  std::promise<void> ended;
  std::thread slow([&, end = ended.get_future()] {
    while (disk_.wait_until_stalled_or([&] { return over.load(); })) {
      end.wait_for(seconds(2));
      disk_.release();
    }
  });
  std::vector<std::string> said(n);
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < n; ++i) {
    clients.emplace_back(
        [&, i] { said[i] = send_order("K" + std::to_string(i)).header("Idempotency-Status"); });
  }
  // A store that is slow for everything else is not slow for what matches no operation.
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(HttpClient(gateway_->port()).get("/things").status, 201);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(2));
  for (auto& client : clients) client.join();
  over = true;
  ended.set_value();
  disk_.disarm();
  slow.join();
  std::map<std::string, std::size_t> counts;
  for (const auto& status : said) ++counts[status];
  for (const auto& [status, count] : counts) std::printf("%zu %s\n", count, status.c_str());
  EXPECT_GT(counts["executed"], 0U);
  for (std::size_t i = 0; i < n; ++i) {
    const std::string key = "K" + std::to_string(i);
    EXPECT_TRUE(eventually([&] { return send_order(key).status == 201; })) << key;
    EXPECT_EQ(upstream_.effects(key), 1U) << key << ": " << said[i];
  }
}

}  // namespace
}  // namespace einmal::test
