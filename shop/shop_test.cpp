#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "einmal/base/random.hpp"
#include "einmal/testing/process.hpp"
#include "einmal/testing/raw_client.hpp"
#include "shop/server.hpp"
#include "shop/shop.hpp"

namespace einmal::shop {
namespace {

using test::Ended;
using test::HttpClient;
using ::testing::HasSubstr;

class DemoShop : public ::testing::Test {
 protected:
  void open(Guards guards = {}) {
    server_.reset();
    auto place = sqlite_place(directory_.file("ledger.db"), Keeping::effects);
    ASSERT_TRUE(place) << place.error().message;
    ledger_ = std::make_unique<Ledger>(std::move(*place));
    shop_ = std::make_unique<Shop>(*ledger_, random_, guards);
    auto server = Server::start(*shop_, "127.0.0.1", 0);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void SetUp() override { open(); }
  HttpClient client() const { return HttpClient(server_->port()); }
  std::string effects() const { return client().get("/effects").member("count"); }

  test::TempDir directory_;
  SystemRandom random_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Shop> shop_;
  std::unique_ptr<Server> server_;
};

const std::string coffee = R"({"item":"coffee","amount":300})";

TEST_F(DemoShop, books_an_order_and_shows_it) {
  const auto made = client().post("/orders", coffee);
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.member("amount"), "300");
  EXPECT_EQ(made.header("Location"), "/orders/" + made.member("id"));
  const auto seen = client().get(made.header("Location"));
  EXPECT_EQ(seen.status, 200);
  EXPECT_EQ(seen.body, made.body);
  EXPECT_EQ(effects(), "1");
}

TEST_F(DemoShop, takes_a_form_as_it_takes_json) {
  const test::HeaderList form{{"Content-Type", "application/x-www-form-urlencoded"}};
  const auto made = client().post("/orders", "item=green+tea+%26%20milk&amount=300", form);
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.member("item"), "green tea & milk");
  EXPECT_EQ(made.member("amount"), "300");
  for (const char* broken : {"item=tea", "item=tea&amount=3x", "item=tea&amount=", "%zz", "",
                             "item=%ff&amount=3", "item=tea%00&amount=3"})
    EXPECT_EQ(client().post("/orders", broken, form).status, 400) << broken;
  EXPECT_EQ(client().post("/orders", "item=tea&amount=3&card=declined", form).status, 402);
  EXPECT_EQ(effects(), "1");
}

TEST_F(DemoShop, counts_the_effects_of_one_item) {
  client().post("/orders", coffee, {{"Idempotency-Key", "K"}});
  client().post("/orders", R"({"item":"green tea","amount":1})");
  EXPECT_EQ(client().get("/effects?item=green%20tea").body, "{\"count\":1,\"by_key\":{}}\n");
  EXPECT_EQ(client().get("/effects?item=coffee").body, "{\"count\":1,\"by_key\":{\"K\":1}}\n");
  EXPECT_EQ(client().get("/effects?item=milk").member("count"), "0");
}

TEST_F(DemoShop, shows_a_page_to_browsers_and_words_to_others) {
  const auto page = client().get("/", {{"Accept", "text/html,*/*"}});
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.body, HasSubstr("/page.js"));
  EXPECT_EQ(client().get("/page.js").header("Content-Type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(client().get("/receipt").status, 200);
  EXPECT_THAT(client().get("/").body, HasSubstr("POST /orders"));
  EXPECT_EQ(client().get("/page.ts").status, 404);
}

TEST_F(DemoShop, books_the_second_copy_of_a_request_as_well) {
  for (int i = 0; i < 2; ++i) client().post("/orders", coffee, {{"Idempotency-Key", "\"K\""}});
  EXPECT_EQ(client().get("/effects").body, "{\"count\":2,\"by_key\":{\"K\":2}}\n");
  EXPECT_THAT(client().get("/orders?key=K").body, HasSubstr("coffee"));
}

TEST_F(DemoShop, refuses_an_older_token_when_it_is_the_fencing_one) {
  const auto order = [&](const char* token, const char* key = "K") {
    return client()
        .post("/orders", coffee, {{"Idempotency-Key", key}, {"Einmal-Fencing-Token", token}})
        .status;
  };
  open({.fencing = true});
  EXPECT_EQ(order("7"), 201);
  EXPECT_EQ(order("6"), 409);
  EXPECT_EQ(order("6", "other"), 201) << "another key is another thing";
  EXPECT_EQ(order("7"), 201) << "fencing alone does not deduplicate";
  EXPECT_EQ(order("10"), 201) << "a number, not a text";
  open({.fencing = true});
  EXPECT_EQ(order("9"), 409) << "remembered in the books";
  EXPECT_EQ(order("-3"), 400);
  EXPECT_EQ(order("9x"), 400);
  const auto stale =
      client().post("/orders", coffee, {{"Idempotency-Key", "K"}, {"Einmal-Fencing-Token", "9"}});
  EXPECT_EQ(stale.header("Einmal-Outcome"), "released");
  EXPECT_EQ(client().post("/orders", coffee).status, 201) << "without einmal nothing is fenced";
  EXPECT_EQ(effects(), "5");
}

TEST_F(DemoShop, fences_by_the_operation_where_no_key_is_forwarded_and_also_a_put) {
  open({.fencing = true});
  const auto put = [&](const char* token, const char* operation, const char* amount) {
    test::HttpRequest request;
    request.method = "PUT";
    request.target = "/orders/0b0e6a4e-4d5c-4b8e-9c3f-0d6a5b1e2f30";
    request.body = std::string("{\"item\":\"tea\",\"amount\":") + amount + "}";
    request.headers = {{"Einmal-Operation-Id", operation}, {"Einmal-Fencing-Token", token}};
    return client().send(request).status;
  };
  EXPECT_EQ(put("4", "one", "1"), 201);
  EXPECT_EQ(put("3", "one", "2"), 409);
  EXPECT_EQ(put("3", "two", "3"), 200);
  EXPECT_EQ(effects(), "2");
}

TEST_F(DemoShop, declines_a_card_without_booking) {
  EXPECT_EQ(client().post("/payments", R"({"amount":5,"card":"declined"})").status, 402);
  EXPECT_EQ(client().post("/payments", R"({"amount":5,"card":"4242"})").status, 201);
  EXPECT_EQ(effects(), "1");
}

TEST_F(DemoShop, takes_an_order_under_an_id_that_the_client_made) {
  test::HttpRequest put;
  put.method = "PUT";
  put.target = "/orders/8e03978e-40d5-43e8-bc93-6894a57f9324";
  put.body = coffee;
  EXPECT_EQ(client().send(put).status, 201);
  EXPECT_EQ(client().send(put).status, 200);
  EXPECT_EQ(effects(), "1");
  put.body = R"({"item":"tea","amount":1})";
  EXPECT_EQ(client().send(put).status, 200);
  EXPECT_EQ(effects(), "2");
  put.method = "DELETE";
  put.body.clear();
  EXPECT_EQ(client().send(put).status, 204);
  EXPECT_EQ(client().send(put).status, 404);
  EXPECT_EQ(effects(), "2");
}

TEST_F(DemoShop, says_what_is_wrong_with_a_request) {
  EXPECT_EQ(client().post("/orders", "{").status, 400);
  EXPECT_THAT(client().post("/orders", R"({"item":"x"})").body, HasSubstr("amount"));
  EXPECT_EQ(client().post("/orders", R"({"amount":1.5,"item":"x"})").status, 400);
  EXPECT_EQ(client().post("/orders", coffee, {{"X-Demo-Fault", "nonsense"}}).status, 400);
  EXPECT_EQ(client().post("/orders", coffee, {{"X-Demo-Delay", "2"}}).status, 400);
  EXPECT_EQ(client().get("/nothing").status, 404);
  EXPECT_EQ(client().get("/orders/none").status, 404);
  EXPECT_EQ(client().post("/effects", "").status, 405);
  EXPECT_EQ(effects(), "0");
}

TEST_F(DemoShop, performs_its_faults) {
  const auto faulty = [&](const char* fault) {
    return client().post("/orders", coffee, {{"X-Demo-Fault", fault}});
  };
  EXPECT_EQ(faulty("drop-before-commit").ended, Ended::truncated);
  EXPECT_EQ(effects(), "0");
  EXPECT_EQ(faulty("drop-after-commit").ended, Ended::truncated);
  EXPECT_EQ(effects(), "1");
  EXPECT_EQ(faulty("500").status, 500);
  EXPECT_EQ(effects(), "2");
  const auto busy = faulty("503");
  EXPECT_EQ(busy.status, 503);
  EXPECT_EQ(busy.header("Einmal-Outcome"), "released");
  EXPECT_EQ(effects(), "2");
  test::RawClient hanging(server_->port());
  test::HttpRequest request;
  request.body = coffee;
  request.headers = {{"X-Demo-Fault", "hang"}};
  hanging.send(request);
  EXPECT_EQ(hanging.read_some(test::Milliseconds(50)).kind, test::Incoming::Kind::timeout);
  EXPECT_EQ(effects(), "2");
}

TEST_F(DemoShop, keeps_its_books_over_a_restart_and_serves_many_at_once) {
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([this] {
      test::RawClient connection(server_->port());
      test::HttpRequest request;
      request.body = coffee;
      for (int n = 0; n < 50; ++n) {
        connection.send(request);
        EXPECT_EQ(connection.read_answer().status, 201);
      }
    });
  }
  for (auto& each : clients) each.join();
  EXPECT_EQ(effects(), "800");
  open();
  EXPECT_EQ(effects(), "800");
}

TEST_F(DemoShop, says_so_when_the_port_is_taken_or_the_ledger_cannot_be_opened) {
  const auto taken = Server::start(*shop_, "127.0.0.1", server_->port());
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("--listen"));
  EXPECT_FALSE(sqlite_place(directory_.file("no/such/folder/ledger.db"), Keeping::effects));
}

}  // namespace
}  // namespace einmal::shop
