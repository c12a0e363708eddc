#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/command.hpp"
#include "support/gateway.hpp"
#include "support/shop.hpp"

/// Window 7: the outcome is unknown and the gateway asks the upstream what became of it, which says
/// yes, no, nothing, or is asked while the owner is alive after all. The upstream is the demo shop
/// in a process of its own; its books count the effects.

namespace einmal::test {
namespace {

using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto uncertain = "504 uncertain outcome-uncertain";

/// The order's operation, with the upstream asked about what is unknown.
std::string asking(const std::string& quiescence) {
  return "[[operation]]\nname = \"create-order\"\nmatch = \"POST /orders\"\nquiescence = \"" +
         quiescence +
         "\"\nreconcile = { request = \"GET /orders?key={key}\", completed = [\"200 /orders/0\"], "
         "absent = [\"200 /orders = []\"], status = 201, result = \"/orders/0\", location = "
         "\"/orders/{/id}\" }\n";
}

class UnknownOutcome : public GatewayTest {
 protected:
  void open_before_shop(const std::string& quiescence, std::vector<std::string> switches = {},
                        const std::string& defaults = {}) {
    shop_ = std::make_unique<ShopProcess>(directory_.path().string(), std::move(switches));
    open({.upstream = shop_->url(), .defaults = defaults, .operations = asking(quiescence)});
  }
  /// An order whose effect, if any, nobody hears of.
  static HttpRequest coffee(const std::string& fault = {}, const std::string& key = "K") {
    auto request = order(key, R"({"item":"coffee","amount":300})");
    if (!fault.empty()) request.headers.emplace_back("X-Demo-Fault", fault);
    return request;
  }
  /// Sends again until the answer is neither uncertain nor in progress.
  HttpAnswer send_until_known(const HttpRequest& request) const {
    HttpAnswer answer;
    EXPECT_TRUE(eventually([&] {
      answer = send(request);
      return answer.status != 504 && answer.status != 409 && answer.status != 503;
    })) << in_words(answer);
    return answer;
  }
  std::string history(const std::string& key = "K") const {
    return run_einmal({"records", "show", "--store", gateway_->store_url(), "--caller", "alice",
                       "--operation", "create-order", "--key", key})
        .output;
  }

  std::unique_ptr<ShopProcess> shop_;
};

TEST_F(UnknownOutcome, that_the_upstream_finds_in_its_books_is_replayed_and_the_audit_says_so) {
  open_before_shop("1h");
  const auto first = send(coffee("drop-after-commit"));
  EXPECT_EQ(in_words(first), uncertain);
  EXPECT_NE(first.header("Retry-After"), "") << "a reconciler works on it";
  const auto known = send_until_known(coffee());
  EXPECT_EQ(in_words(known), "201 resolved");
  EXPECT_EQ(known.member("item"), "coffee");
  EXPECT_EQ(known.header("Location"), "/orders/" + known.member("id"));
  EXPECT_EQ(send(coffee()).body, known.body);
  EXPECT_EQ(shop_->effects(), "1");
  EXPECT_THAT(history(), AllOf(HasSubstr("uncertain -> completed, by reconciler:create-order: GET "
                                         "/orders?key={key} was answered 200"),
                               Not(HasSubstr("coffee"))));
}

TEST_F(UnknownOutcome, that_left_no_trace_frees_the_key_after_quiescence_and_not_before) {
  open_before_shop("2s");
  const auto sent = steady_clock::now();
  EXPECT_EQ(in_words(send(coffee("drop-before-commit"))), uncertain);
  EXPECT_EQ(in_words(send_until_known(coffee())), "201 executed");
  EXPECT_GE(steady_clock::now() - sent, std::chrono::seconds(2));
  EXPECT_EQ(in_words(send(coffee())), "201 replayed");
  EXPECT_EQ(shop_->effects(), "1");
  EXPECT_THAT(history(), HasSubstr("uncertain -> freed, by reconciler:create-order"));
}

TEST_F(UnknownOutcome, that_appears_while_it_is_not_quiet_yet_is_found_and_not_executed_again) {
  open_before_shop("3s", {}, "answer_timeout = \"300ms\"\nlate_answer = \"1s\"\n");
  auto slow = coffee("drop-after-commit");
  slow.headers.emplace_back("X-Demo-Delay", "1500ms");
  EXPECT_EQ(in_words(send(slow)), uncertain);
  EXPECT_EQ(in_words(send_until_known(coffee())), "201 resolved");
  EXPECT_EQ(shop_->effects(), "1");
}

TEST_F(UnknownOutcome, of_which_the_upstream_can_say_nothing_stays_uncertain) {
  upstream_.always([](const HttpRequest& request, std::size_t) {
    if (request.method == "POST") return Play().reset();
    return Play().answer(500, "cannot say");
  });
  open({.operations = asking("1ms")});
  EXPECT_EQ(in_words(send(order("K"))), uncertain);
  EXPECT_TRUE(eventually([&] { return upstream_.count() >= 3; })) << "asked more than once";
  EXPECT_EQ(in_words(send(order("K"))), uncertain);
  EXPECT_THAT(history(), HasSubstr("uncertain"));
  std::size_t posts = 0;
  for (const auto& request : upstream_.requests()) posts += request.method == "POST" ? 1 : 0;
  EXPECT_EQ(posts, 1u);
}

TEST_F(UnknownOutcome, of_an_owner_that_was_killed_is_found_out_by_another_process) {
  open_before_shop("1h", {}, "lease = \"1s\"\n");
  gateway_->kill();
  GatewayProcess dying(directory_.path().string(), gateway_->setup());
  dying.start({{"EINMAL_KILL_AT", "answer_complete"}});
  RawClient client(dying.port());
  client.send(coffee());
  ASSERT_TRUE(dying.process().wait_for_exit());
  gateway_->restart();
  EXPECT_EQ(in_words(send_until_known(coffee())), "201 resolved");
  EXPECT_EQ(shop_->effects(), "1");
}

TEST_F(UnknownOutcome, that_a_stopped_owner_still_knows_is_settled_once_and_its_late_word_is_kept) {
  open_before_shop("1h", {}, "lease = \"1s\"\n");
  GatewayProcess owner(directory_.path().string(), gateway_->setup());
  owner.start({{"EINMAL_STOP_AT", "answer_complete"}});
  RawClient client(owner.port());
  client.send(coffee());
  ASSERT_TRUE(eventually([&] { return owner.process().is_stopped(); }));
  const auto known = send_until_known(coffee());
  EXPECT_EQ(in_words(known), "201 resolved");
  owner.process().resume();
  const auto late = client.read_answer();
  // Answered from the record as it stands, or, from a store that was slow, as it was received.
  EXPECT_THAT(in_words(late), AnyOf("201 resolved", "201 unrecorded"));
  if (status_of(late) == "resolved") {
    EXPECT_EQ(late.body, known.body);
  }
  EXPECT_EQ(send(coffee()).body, known.body);
  EXPECT_EQ(shop_->effects(), "1");
  EXPECT_TRUE(eventually([&] { return history().find("late result") != std::string::npos; }));
  EXPECT_THAT(history(), Not(HasSubstr("CONTRADICTS")));
}

TEST_F(UnknownOutcome, freed_under_a_stopped_owner_is_executed_once_where_the_upstream_fences) {
  open_before_shop("1ms", {"--fencing"}, "lease = \"1s\"\n");
  GatewayProcess owner(directory_.path().string(), gateway_->setup());
  owner.start({{"EINMAL_STOP_AT", "before_first_byte"}});
  RawClient client(owner.port());
  client.send(coffee());
  ASSERT_TRUE(eventually([&] { return owner.process().is_stopped(); }));
  const auto known = send_until_known(coffee());
  EXPECT_EQ(in_words(known), "201 executed") << "freed, and executed as a new operation";
  owner.process().resume();
  EXPECT_EQ(client.read_answer().body, known.body);
  EXPECT_EQ(shop_->effects(), "1") << "the late forward was refused by its token";
}

TEST_F(UnknownOutcome, is_settled_once_by_three_gateways_that_ask_about_it) {
  upstream_.always([](const HttpRequest& request, std::size_t) {
    if (request.method == "POST") return Play().reset();
    return Play().answer(200, R"({"orders":[{"id":1}]})");
  });
  open({.operations = asking("1h")});
  const auto second = another();
  const auto third = another();
  constexpr int orders = 20;
  for (int i = 0; i < orders; ++i)
    EXPECT_EQ(in_words(send(order("K" + std::to_string(i)))), uncertain);
  for (int i = 0; i < orders; ++i)
    EXPECT_EQ(in_words(send_until_known(order("K" + std::to_string(i)))), "201 resolved");
  const auto questions = upstream_.count() - orders;
  RecordProperty("questions", static_cast<int>(questions));
  EXPECT_LE(questions, 3u * orders) << "each gateway asks at most once about what has an answer";
  for (int i = 0; i < orders; ++i) {
    const auto told = history("K" + std::to_string(i));
    EXPECT_EQ(told.find("by reconciler"), told.rfind("by reconciler")) << told;
  }
}

}  // namespace
}  // namespace einmal::test
