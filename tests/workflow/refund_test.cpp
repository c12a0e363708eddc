#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "einmal/core/derived_key.hpp"
#include "einmal/testing/process.hpp"
#include "einmal/testing/raw_client.hpp"
#include "einmal/workflow/observer.hpp"
#include "support/shop.hpp"
#include "workflow/refund_home.hpp"

/// A refund (order, payment provider, mail) whose process is killed by -9 at every point where the
/// worker stands, and whose provider misbehaves. What counts is in the provider's books and in the
/// service's own database.
namespace einmal::test {
namespace {

/// One refund in a database of its own.
class Refund {
 public:
  Refund(const std::string& shop_url, std::string order, std::vector<std::string> switches)
      : order_(std::move(order)), home_(new_refund_home(order_)), arguments_(std::move(switches)) {
    arguments_.insert(arguments_.begin(),
                      {sibling_program("killable_refund"), home_->database(), shop_url, order_});
  }

  struct Ran {
    std::optional<Exit> exit;
    std::vector<std::string> points;
    std::string errors;
  };
  Ran run(int die_at) const {
    ChildProcess process(arguments_, {{"EINMAL_DIE_AT", std::to_string(die_at)}});
    Ran ran{process.wait_for_exit(std::chrono::minutes(2)), {}, {}};
    process.wait_for_output_end();
    std::istringstream lines(process.output());
    for (std::string at, point, rest; lines >> at >> point && std::getline(lines, rest);) {
      if (at == "at") ran.points.push_back(point);
    }
    ran.errors = process.errors();
    return ran;
  }
  std::string order() const { return home_->order(); }
  std::string derived_key(const std::string& step) const {
    return derive_key(*Scope::make("app", "customer-1", "refund", "refund-" + order_), step);
  }

 private:
  std::string order_;
  std::unique_ptr<RefundHome> home_;
  std::vector<std::string> arguments_;
};

/// Runs `task` for 1..count, eight at once: most of their time passes in waiting for leases.
void for_each_of(int count, const std::function<void(int)>& task) {
  std::atomic<int> next = 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = next++; n <= count; n = next++) task(n);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class RefundTest : public ::testing::Test {
 protected:
  // A server that a home needs ends with the thread that started it.
  RefundTest() : first_home_(new_refund_home("none")) {}

  void use_shop(bool honours_keys) {
    if (honours_keys) switches_ = {"--honours-keys"};
    shop_ = std::make_unique<ShopProcess>(
        directory_.path().string(),
        honours_keys ? std::vector<std::string>{"--idempotent"} : std::vector<std::string>{});
    port_ =
        static_cast<std::uint16_t>(std::stoul(shop_->url().substr(shop_->url().rfind(':') + 1)));
  }
  Refund refund(const std::string& order, const std::string& fault = {}) {
    auto switches = switches_;
    if (!fault.empty()) switches.insert(switches.end(), {"--fault", fault});
    return Refund(shop_->url(), order, switches);
  }
  void note(const std::vector<std::string>& points) {
    const std::lock_guard lock(mutex_);
    seen_.insert(points.begin(), points.end());
  }
  void expect_once(const Refund& refund, const std::string& story) const {
    EXPECT_EQ(refund.order(), "refunded 1") << story;
    const std::string books = HttpClient(port_).get("/effects").body;
    for (const char* step : {"pay", "receipt/send"}) {
      const std::string key = refund.derived_key(step);
      const auto at = books.find('"' + key + "\":");
      ASSERT_NE(at, std::string::npos) << story << ": no effect of " << step;
      EXPECT_EQ(books.substr(at + key.size() + 3, 2).find("1"), 0u) << story << ": " << step;
      EXPECT_FALSE(std::isdigit(books[at + key.size() + 4])) << story << ": " << step;
    }
  }
  /// Kills one refund after another at the first, second ... point of a run with `fault`.
  void kill_at_every_point(const std::string& fault) {
    const auto whole = refund("whole", fault);
    const auto ran = whole.run(0);
    ASSERT_EQ(ran.exit, (Exit{0, 0})) << ran.errors;
    expect_once(whole, "not killed");
    note(ran.points);
    for_each_of(static_cast<int>(ran.points.size()), [&](int n) {
      const auto one = refund("order-" + std::to_string(n), fault);
      const auto first = one.run(n);
      const std::string story = "killed at " + std::to_string(n) + " " +
                                (first.points.empty() ? "" : first.points.back());
      EXPECT_EQ(first.exit, (Exit{-1, SIGKILL})) << story << first.errors;
      const auto second = one.run(0);
      EXPECT_EQ(second.exit, (Exit{0, 0})) << story << second.errors;
      note(second.points);
      expect_once(one, story);
    });
  }

  std::unique_ptr<RefundHome> first_home_;
  TempDir directory_;
  std::vector<std::string> switches_;
  std::unique_ptr<ShopProcess> shop_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::set<std::string> seen_;
};

TEST_F(RefundTest, KilledAtEveryPointEndsOnceWhenTheProviderHonoursKeys) {
  use_shop(true);
  kill_at_every_point("");
}

TEST_F(RefundTest, KilledAtEveryPointEndsOnceWhenTheProviderIsAskedAfterwards) {
  use_shop(false);
  kill_at_every_point("");
}

TEST_F(RefundTest, KilledAtEveryPointOfALostAnswerEndsOnceAndMeetsEveryPoint) {
  use_shop(false);
  kill_at_every_point("drop-after-commit");
  // Those at which a workflow that ends by itself does not come by; worker_test.cpp does.
  seen_.insert({"stopped", "lost"});
  std::set<std::string> all;
  for (const auto point : workflow::all_points) all.emplace(name(point));
  EXPECT_EQ(seen_, all) << "a point without a test";
}

TEST_F(RefundTest, EndsOnceWhateverTheProviderDoesTheFirstTime) {
  const std::vector<std::string> faults{"drop-after-commit", "drop-before-commit", "500", "503",
                                        "hang"};
  for (const bool honours_keys : {true, false}) {
    use_shop(honours_keys);
    for_each_of(static_cast<int>(faults.size()), [&](int n) {
      const std::string& fault = faults[static_cast<std::size_t>(n) - 1];
      const auto one = refund((honours_keys ? "a-" : "b-") + fault, fault);
      const auto ran = one.run(0);
      EXPECT_EQ(ran.exit, (Exit{0, 0})) << fault << ran.errors;
      expect_once(one, fault);
    });
    shop_.reset();
    switches_.clear();
  }
}

TEST_F(RefundTest, SharedByFourProcessesEndsOnce) {
  use_shop(false);
  const auto shared = refund("shared", "drop-after-commit");
  for_each_of(4, [&](int) {
    const auto ran = shared.run(0);
    EXPECT_EQ(ran.exit, (Exit{0, 0})) << ran.errors;
  });
  expect_once(shared, "four processes");
}

}  // namespace
}  // namespace einmal::test
