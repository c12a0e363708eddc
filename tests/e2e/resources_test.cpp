#include <gtest/gtest.h>

#include <string>

#include "support/gateway.hpp"

/// Two patterns beside keys, run against the demo shop behind the gateway, with a key and without:
/// PUT to a name that the client made, and POST-redirect-GET.

namespace einmal::test {
namespace {

class Resources : public GatewayTest {
 protected:
  Resources()
      : shop_({sibling_program("einmal"), "shop", "--listen", "127.0.0.1:0", "--ledger",
               directory_.file("ledger.db")}) {
    const auto line = shop_.wait_for_line("listening on http").value_or("");
    GatewaySetup setup;
    setup.upstream = line.substr(line.find("http://"));
    setup.defaults = "key = \"optional\"\n";
    setup.operations = R"(
[[operation]]
name = "create-order"
match = "POST /orders"
[[operation]]
name = "put-order"
match = "PUT /orders/{id}"
)";
    open(setup);
  }

  static HttpRequest with_key(HttpRequest request, const std::string& key) {
    request.headers.emplace_back("X-Caller", "alice");
    if (!key.empty()) request.headers.emplace_back("Idempotency-Key", key);
    return request;
  }
  static HttpRequest put(const std::string& id, const std::string& key, int amount) {
    HttpRequest request;
    request.method = "PUT";
    request.target = "/orders/" + id;
    request.headers = {{"Content-Type", "application/json"}};
    request.body = "{\"item\":\"tea\",\"amount\":" + std::to_string(amount) + "}";
    return with_key(request, key);
  }
  static HttpRequest form(const std::string& key) {
    HttpRequest request;
    request.target = "/orders";
    request.headers = {{"Content-Type", "application/x-www-form-urlencoded"},
                       {"Accept", "text/html,application/xhtml+xml"}};
    request.body = "item=tea&amount=300";
    return with_key(request, key);
  }
  HttpAnswer get(const std::string& target) const {
    return HttpClient(gateway_->port()).get(target);
  }
  std::string effects() const { return get("/effects").member("count"); }

  ChildProcess shop_;
  static constexpr auto id_ = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
};

TEST_F(Resources, PutToANameThatTheClientMadeIsRepeatedWithoutAKey) {
  EXPECT_EQ(send(put(id_, "", 300)).status, 201);
  const auto again = send(put(id_, "", 300));
  EXPECT_EQ(again.status, 200) << "executed again, which changes nothing";
  EXPECT_EQ(effects(), "1");
  EXPECT_EQ(send(put(id_, "", 400)).status, 200) << "without a key the last one wins";
  EXPECT_EQ(get(std::string("/orders/") + id_).member("amount"), "400");
}

TEST_F(Resources, PutWithAKeyIsAnsweredAsTheFirstTimeAndUndoesNoLaterChange) {
  const auto first = send(put(id_, "K1", 300));
  EXPECT_EQ(in_words(first), "201 executed");
  EXPECT_EQ(in_words(send(put(id_, "K2", 400))), "200 executed");
  const auto late_copy = send(put(id_, "K1", 300));
  EXPECT_EQ(in_words(late_copy), "201 replayed");
  EXPECT_EQ(late_copy.body, first.body);
  EXPECT_EQ(get(std::string("/orders/") + id_).member("amount"), "400");
  EXPECT_EQ(in_words(send(put(id_, "K1", 500))), "422 mismatch key-reused");
}

TEST_F(Resources, PostRedirectGetRepeatsTheRedirectAndNotThePost) {
  const auto first = send(form("K1"));
  EXPECT_EQ(in_words(first), "303 executed");
  const auto location = first.header("Location");
  const auto repeat = send(form("K1"));
  EXPECT_EQ(in_words(repeat), "303 replayed");
  EXPECT_EQ(repeat.header("Location"), location);
  // What a browser does next, and what its reload does: a GET, of which there may be any number.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(get(location).member("item"), "tea");
  EXPECT_EQ(effects(), "1");
}

TEST_F(Resources, PostRedirectGetWithoutAKeyPassesAndProtectsNobodyFromASecondPost) {
  const auto first = send(form(""));
  EXPECT_EQ(first.status, 303);
  EXPECT_EQ(first.header("Idempotency-Status"), "");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(get(first.header("Location")).status, 200);
  EXPECT_EQ(effects(), "1");
  EXPECT_EQ(send(form("")).status, 303);
  EXPECT_EQ(effects(), "2") << "back and send again: only a key helps there";
}

}  // namespace
}  // namespace einmal::test
