#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "einmal/postgres/pg_fixture.hpp"
#include "einmal/testing/process.hpp"
#include "einmal/testing/raw_client.hpp"

/// The example services, as a client sees them.
namespace einmal::test {
namespace {

namespace fs = std::filesystem;

std::string whole_file(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// A copy of the Node.js example with its packages. Throws what to do if npm could not get them.
std::string node_service() {
  const fs::path copy = EINMAL_NODE_COPY, source = fs::path(EINMAL_EXAMPLES) / "node";
  fs::create_directories(copy);
  for (const char* file : {"order_service.js", "package.json", "package-lock.json"})
    fs::copy_file(source / file, copy / file, fs::copy_options::overwrite_existing);
  if (!fs::exists(copy / "node_modules" / "pg")) {
    ChildProcess npm(
        {"/usr/bin/env", "npm", "ci", "--no-audit", "--no-fund", "--prefix", copy.string()});
    const auto ended = npm.wait_for_exit(std::chrono::minutes(2));
    if (!ended || ended->status != 0) {
      npm.kill();
      npm.wait_for_output_end();
      throw std::runtime_error(
          "npm ci of " + copy.string() +
          " failed. It needs node and npm (tools/install-packages tools/packages/test.txt) and the "
          "package registry that npm is configured for.\n" +
          npm.errors());
    }
  }
  return (copy / "order_service.js").string();
}

class OrderServices : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const bool node = std::string(GetParam()) == "Node";
    std::vector<std::string> arguments{sibling_program("einmal_order_service")};
    if (node) arguments = {"/usr/bin/env", "node", node_service()};
    Client admin(database_.conninfo());
    admin(whole_file(fs::path(EINMAL_EXAMPLES) / "orders.sql"));
    // The rights that the documentation says are enough.
    admin(
        "do $$ begin if not exists (select from pg_roles where rolname = 'shop_service') then"
        " create role shop_service login in role einmal_app; end if; end $$;"
        "grant insert, select (id) on orders to shop_service");
    const std::string url = "postgresql:///" + database_.name() +
                            "?host=" + shared_server().socket_folder() + "&user=shop_service";
    start(arguments, url);
  }

  void start(const std::vector<std::string>& arguments, const std::string& url) {
    service_ = std::make_unique<ChildProcess>(
        arguments, ChildProcess::Environment{{"DATABASE_URL", url}, {"PORT", "0"}});
    const auto line = service_->wait_for_line("listening on http://127.0.0.1:");
    ASSERT_TRUE(line) << service_->errors();
    port_ = static_cast<std::uint16_t>(std::stoi(line->substr(line->rfind(':') + 1)));
  }

  HttpAnswer post(const std::string& key, const std::string& body,
                  const std::string& caller = "alice") {
    return HttpClient(port_).post("/orders", body,
                                  {{"X-Caller", caller}, {"Idempotency-Key", key}});
  }
  std::string orders() { return Client(database_.conninfo())("select count(*) from orders"); }

  Database database_;
  std::unique_ptr<ChildProcess> service_;
  std::uint16_t port_ = 0;
};

INSTANTIATE_TEST_SUITE_P(In, OrderServices, ::testing::Values("Cpp", "Node"),
                         [](const auto& language) { return std::string(language.param); });

TEST_P(OrderServices, BookAnOrderOnceAndReplayItsAnswer) {
  const auto first = post("k", R"({"item":"book","amount":20})");
  EXPECT_EQ(first.status, 201) << first.body << service_->errors();
  EXPECT_EQ(first.header("Idempotent-Replayed"), "");
  const auto again = post("k", R"({"amount":20,"item":"book"})");
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(again.header("Idempotent-Replayed"), "true");
  EXPECT_EQ(post("k", R"({"item":"book","amount":21})").status, 422);
  EXPECT_EQ(post("k", R"({"item":"book","amount":20})", "bob").status, 201)
      << "another caller's key";
  EXPECT_EQ(orders(), "2");
}

TEST_P(OrderServices, KeepARefusalAndFreeTheKeyOfARequestThatFailed) {
  const std::string declined = R"({"item":"book","amount":20,"card":"declined"})";
  EXPECT_EQ(post("declined", declined).status, 402);
  const auto again = post("declined", declined);
  EXPECT_EQ(again.status, 402);
  EXPECT_EQ(again.header("Idempotent-Replayed"), "true");
  EXPECT_EQ(post("k", R"({"item":"book","amount":-1})").status, 503) << "a constraint refuses it";
  EXPECT_EQ(post("k", R"({"item":"book","amount":1})").status, 201) << "and the key is free";
  EXPECT_EQ(orders(), "1");
}

TEST_P(OrderServices, BookOneOfManyAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> executed = 0, replayed = 0, rejected = 0, other = 0;
  for (int i = 0; i < 30; ++i) {
    threads.emplace_back([&] {
      const auto answer = post("k", R"({"item":"book","amount":20})");
      if (answer.status == 201)
        ++(answer.header("Idempotent-Replayed").empty() ? executed : replayed);
      else
        ++(answer.status == 409 ? rejected : other);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(executed, 1);
  EXPECT_EQ(other, 0);
  EXPECT_EQ(executed + replayed + rejected, 30);
  EXPECT_EQ(orders(), "1");
}

TEST_P(OrderServices, RefuseARequestWithoutAUsableKeyOrCaller) {
  EXPECT_EQ(post("", R"({"item":"book","amount":20})").status, 400);
  EXPECT_EQ(post("k", "not json").status, 400);
  EXPECT_EQ(post("k", R"({"item":"book","amount":20})", "").status, 401);
  EXPECT_EQ(post("k", R"({"item":"book","amount":20})").status, 201);
  EXPECT_EQ(orders(), "1");
}

TEST_P(OrderServices, LoseAndDoubleNothingWhenTheyAreKilled) {
  // Killed at any moment of a request, started again, asked again: one order a key.
  const std::vector<std::string> arguments =
      std::string(GetParam()) == "Node"
          ? std::vector<std::string>{"/usr/bin/env", "node", node_service()}
          : std::vector<std::string>{sibling_program("einmal_order_service")};
  const std::string url = "postgresql:///" + database_.name() +
                          "?host=" + shared_server().socket_folder() + "&user=shop_service";
  for (int round = 0; round < 8; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        try {
          post("k" + std::to_string(round) + "-" + std::to_string(i),
               R"({"item":"book","amount":20})");
        } catch (const std::exception&) {  // it was killed before it accepted
        }
      });
    }
    const std::string before = orders();
    eventually([&] { return orders() != before; }, Milliseconds(50));
    service_->kill();
    for (auto& thread : threads) thread.join();
    start(arguments, url);
    for (int i = 0; i < 8; ++i) {
      EXPECT_TRUE(eventually([&] {
        return post("k" + std::to_string(round) + "-" + std::to_string(i),
                    R"({"item":"book","amount":20})")
                   .status == 201;
      }));
    }
  }
  EXPECT_EQ(orders(), "64");
}

}  // namespace
}  // namespace einmal::test
