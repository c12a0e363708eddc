#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "books_in_tests.hpp"
#include "support/shop.hpp"

/// `einmal shop --idempotent`: claim, booking and answer in one transaction on its own books.

namespace einmal::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class IdempotentShop : public ::testing::Test {
 protected:
  void start(std::vector<std::string> switches = {}) {
    switches.insert(switches.begin(), "--idempotent");
    shop_ = std::make_unique<ShopProcess>(ShopProcess::Ledger{books_}, std::move(switches));
  }
  void SetUp() override { start(); }

  HttpAnswer post(const std::string& key, const std::string& body, HeaderList headers = {}) {
    headers.emplace_back("Idempotency-Key", key);
    headers.emplace_back("Content-Type", "application/json");
    return HttpClient(shop_->port()).post("/orders", body, std::move(headers));
  }
  HttpAnswer send(const std::string& method, const std::string& target, const std::string& key,
                  const std::string& body = {}) {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.headers = {{"Idempotency-Key", key}, {"Content-Type", "application/json"}};
    request.body = body;
    return HttpClient(shop_->port()).send(request);
  }
  static std::string in_words(const HttpAnswer& answer) {
    return std::to_string(answer.status) + " " + answer.header("Idempotency-Status");
  }
  std::string effects() { return shop_->effects(); }

  TempDir directory_;
  const std::string books_ = new_books(directory_.path().string());
  std::unique_ptr<ShopProcess> shop_;
};

const std::string coffee = R"({"item":"coffee","amount":300})";
const std::string tea = R"({"item":"tea","amount":300})";

TEST_F(IdempotentShop, books_once_and_replays_the_same_bytes_also_after_a_restart) {
  const auto first = post("K", coffee);
  EXPECT_EQ(in_words(first), "201 executed");
  EXPECT_EQ(first.header("Idempotent-Replayed"), "");
  for (const char* again : {R"({"item":"coffee","amount":300})",
                            R"({ "amount":3e2, "currency":"eur", "item":"coffee"})"}) {
    const auto replay = post("\"K\"", again);
    EXPECT_EQ(in_words(replay), "201 replayed") << again;
    EXPECT_EQ(replay.header("Idempotent-Replayed"), "true");
    EXPECT_EQ(replay.body, first.body);
    EXPECT_EQ(replay.header("Location"), first.header("Location"));
    EXPECT_EQ(replay.header("Content-Type"), first.header("Content-Type"));
  }
  start();
  EXPECT_EQ(post("K", coffee).body, first.body);
  EXPECT_EQ(effects(), "1");
}

TEST_F(IdempotentShop, refuses_another_request_under_the_same_key) {
  const auto first = post("K", coffee);
  const auto other = post("K", tea);
  EXPECT_EQ(in_words(other), "422 mismatch");
  EXPECT_EQ(other.header("Content-Type"), "application/problem+json");
  EXPECT_EQ(other.member("reason"), "key-reused");
  EXPECT_EQ(post("K", coffee).body, first.body) << "the first result is untouched";
  EXPECT_EQ(effects(), "1");
}

TEST_F(IdempotentShop, keeps_the_keys_of_callers_and_operations_apart) {
  EXPECT_EQ(in_words(post("K", coffee, {{"X-Caller", "alice"}})), "201 executed");
  EXPECT_EQ(in_words(post("K", coffee, {{"X-Caller", "bob"}})), "201 executed");
  EXPECT_EQ(in_words(post("K", coffee, {{"X-Caller", "alice"}})), "201 replayed");
  EXPECT_EQ(in_words(send("POST", "/payments", "K", R"({"amount":5})")), "201 executed");
  EXPECT_EQ(effects(), "3");
  const auto nobody = post("K", coffee, {{"X-Caller", ""}});
  EXPECT_EQ(nobody.status, 403);
  EXPECT_EQ(nobody.member("reason"), "caller-missing");
}

TEST_F(IdempotentShop, refuses_a_key_that_is_missing_or_malformed) {
  const auto without = HttpClient(shop_->port()).post("/orders", coffee);
  EXPECT_EQ(in_words(without), "400 rejected");
  EXPECT_EQ(without.member("reason"), "key-missing");
  for (const std::string key : {"", "a,b", "\"unfinished", "two words"}) {
    const auto answer = post(key, coffee);
    EXPECT_EQ(answer.member("reason"), "key-invalid") << key;
    EXPECT_EQ(in_words(answer), "400 rejected") << key;
  }
  EXPECT_EQ(post("K", coffee, {{"Idempotency-Key", "K"}}).member("reason"), "key-invalid");
  EXPECT_EQ(effects(), "0");
  start({"--key", "optional"});
  EXPECT_EQ(HttpClient(shop_->port()).post("/orders", coffee).status, 201);
  EXPECT_EQ(effects(), "1");
}

TEST_F(IdempotentShop, keeps_a_refusal_and_frees_the_key_of_what_was_never_done) {
  const std::string declined = R"({"item":"coffee","amount":300,"card":"declined"})";
  EXPECT_EQ(in_words(post("declined", declined)), "402 executed");
  EXPECT_EQ(in_words(post("declined", declined)), "402 replayed");
  EXPECT_EQ(in_words(post("K", R"({"item":"coffee"})")), "400 released");
  EXPECT_EQ(in_words(post("K", coffee)), "201 executed") << "with a corrected body";
  EXPECT_EQ(effects(), "1");
}

TEST_F(IdempotentShop, does_a_put_and_a_delete_once_and_replays_what_was_then) {
  const std::string target = "/orders/8e03978e-40d5-43e8-bc93-6894a57f9324";
  EXPECT_EQ(in_words(send("PUT", target, "put", coffee)), "201 executed");
  EXPECT_EQ(in_words(send("PUT", target, "other", tea)), "200 executed");
  EXPECT_EQ(in_words(send("PUT", target, "put", coffee)), "201 replayed");
  EXPECT_THAT(HttpClient(shop_->port()).get(target).body, HasSubstr("tea"));
  EXPECT_EQ(in_words(send("DELETE", target, "gone")), "204 executed");
  EXPECT_EQ(in_words(send("DELETE", target, "gone")), "204 replayed");
  EXPECT_EQ(in_words(send("DELETE", target, "again")), "404 released");
  EXPECT_EQ(in_words(send("PUT", target, "other", tea)), "200 replayed");
  EXPECT_EQ(HttpClient(shop_->port()).get(target).status, 404);
  EXPECT_EQ(effects(), "2");
}

TEST_F(IdempotentShop, performs_each_fault_and_books_once_all_the_same) {
  EXPECT_FALSE(post("before", coffee, {{"X-Demo-Fault", "drop-before-commit"}}).is_whole());
  EXPECT_EQ(effects(), "0");
  EXPECT_EQ(in_words(post("before", coffee)), "201 executed");
  EXPECT_FALSE(post("after", coffee, {{"X-Demo-Fault", "drop-after-commit"}}).is_whole());
  EXPECT_EQ(effects(), "2");
  EXPECT_EQ(in_words(post("after", coffee)), "201 replayed");
  EXPECT_EQ(post("500", coffee, {{"X-Demo-Fault", "500"}}).status, 500);
  EXPECT_EQ(effects(), "3");
  EXPECT_EQ(in_words(post("500", coffee)), "201 replayed") << "it was booked, whatever the answer";
  const auto busy = post("503", coffee, {{"X-Demo-Fault", "503"}});
  EXPECT_EQ(in_words(busy), "503 released");
  EXPECT_EQ(busy.header("Einmal-Outcome"), "released");
  EXPECT_EQ(in_words(post("503", tea)), "201 executed") << "the key was free";
  EXPECT_EQ(effects(), "4");
}

TEST_F(IdempotentShop, books_one_of_sixteen_at_once) {
  for (const char* delay : {"0ms", "50ms"}) {
    std::map<std::string, int> seen;
    std::mutex mutex;
    std::vector<std::thread> clients;
    for (int i = 0; i < 16; ++i) {
      clients.emplace_back([&] {
        const auto answer = post(std::string("K") + delay, coffee, {{"X-Demo-Delay", delay}});
        const std::lock_guard lock(mutex);
        ++seen[in_words(answer)];
        if (answer.status == 409) {
          EXPECT_EQ(answer.member("reason"), "in-progress");
          EXPECT_EQ(answer.header("Einmal-Outcome"), "released");
          EXPECT_GE(std::stoi(answer.header("Retry-After")), 1);
        }
      });
    }
    for (auto& each : clients) each.join();
    EXPECT_EQ(seen["201 executed"], 1) << delay;
    EXPECT_EQ(seen["201 executed"] + seen["201 replayed"] + seen["409 in-progress"], 16) << delay;
    EXPECT_EQ(in_words(post(std::string("K") + delay, coffee)), "201 replayed");
  }
  EXPECT_EQ(effects(), "2");
}

/// A request that has claimed its key and will be at work for long.
class AtWork {
 public:
  AtWork(std::uint16_t port, const std::string& key) {
    HttpRequest slow, look;
    slow.headers = {{"Idempotency-Key", key}, {"X-Demo-Delay", "3600s"}};
    look.headers = {{"Idempotency-Key", key}, {"X-Demo-Fault", "503"}};
    slow.body = look.body = coffee;
    EXPECT_TRUE(eventually([&] {
      // It may itself have met somebody who looked, and have been sent away.
      if (!client_ || client_->read_some(Milliseconds(0)).kind != Incoming::Kind::timeout) {
        client_ = std::make_unique<RawClient>(port);
        client_->send(slow);
      }
      duplicate_ = HttpClient(port).send(look);
      return duplicate_.status == 409 &&
             client_->read_some(Milliseconds(50)).kind == Incoming::Kind::timeout;
    })) << duplicate_.status;
  }
  /// What a duplicate was told meanwhile.
  const HttpAnswer& duplicate() const { return duplicate_; }

 private:
  std::unique_ptr<RawClient> client_;
  HttpAnswer duplicate_;
};

TEST_F(IdempotentShop, rejects_a_duplicate_at_once_while_the_first_is_at_work) {
  const AtWork first(shop_->port(), "K");
  EXPECT_EQ(in_words(first.duplicate()), "409 in-progress");
  EXPECT_EQ(effects(), "0");
}

TEST_F(IdempotentShop, leaves_nothing_of_a_request_that_was_killed_before_its_commit) {
  const AtWork first(shop_->port(), "K");
  shop_->process().kill();
  start();
  EXPECT_EQ(effects(), "0");
  // A server may need a moment to notice that its client is gone.
  HttpAnswer again;
  ASSERT_TRUE(eventually([&] { return (again = post("K", coffee)).status == 201; }));
  EXPECT_EQ(in_words(again), "201 executed") << "the key is free";
  EXPECT_EQ(effects(), "1");
}

TEST_F(IdempotentShop, replays_what_was_committed_before_it_was_killed) {
  const auto lost = post("K", coffee, {{"X-Demo-Fault", "drop-after-commit"}});
  EXPECT_FALSE(lost.is_whole());
  shop_->process().kill();
  start();
  EXPECT_EQ(in_words(post("K", coffee)), "201 replayed");
  EXPECT_EQ(effects(), "1");
}

TEST_F(IdempotentShop, loses_and_doubles_nothing_when_it_is_killed_at_any_moment) {
  int sent = 0;
  for (int round = 0; round < 8; ++round) {
    std::vector<std::thread> clients;
    for (int i = 0; i < 8; ++i) {
      clients.emplace_back([&, i] {
        try {
          post(std::to_string(round) + "-" + std::to_string(i), coffee, {{"X-Demo-Delay", "2ms"}});
        } catch (const std::exception&) {  // It was killed before it accepted.
        }
      });
    }
    try {
      eventually([&] { return effects() != std::to_string(sent); }, Milliseconds(50 * round));
    } catch (const std::exception&) {
    }
    shop_->process().kill();
    for (auto& each : clients) each.join();
    start();
    for (int i = 0; i < 8; ++i) {
      const auto key = std::to_string(round) + "-" + std::to_string(i);
      EXPECT_TRUE(eventually([&] {
        return post(key, coffee, {{"X-Demo-Delay", "2ms"}}).status == 201;
      }));
    }
    sent += 8;
    EXPECT_EQ(effects(), std::to_string(sent));
  }
}

TEST_F(IdempotentShop, takes_a_key_anew_when_its_retention_is_over) {
  start({"--retention", "300ms"});
  EXPECT_EQ(in_words(post("K", coffee)), "201 executed");
  ASSERT_TRUE(eventually([&] { return in_words(post("K", tea)) == "201 executed"; }));
  EXPECT_EQ(effects(), "2");
}

}  // namespace
}  // namespace einmal::test
