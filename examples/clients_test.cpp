#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "einmal/testing/process.hpp"
#include "einmal/testing/raw_client.hpp"
#include "einmal/testing/tcp_gate.hpp"

/// The patterns of docs/clients.md, run against the demo shop.

namespace einmal::test {
namespace {

using ::testing::HasSubstr;

std::uint16_t port_of(ChildProcess& process) {
  const auto line = process.wait_for_line("listening on ");
  if (!line) throw std::runtime_error("not started: " + process.errors());
  return static_cast<std::uint16_t>(std::stoi(line->substr(line->rfind(':') + 1)));
}

class ClientPatterns : public ::testing::Test {
 protected:
  ClientPatterns()
      : shop_({sibling_program("einmal"), "shop", "--listen", "127.0.0.1:0", "--ledger",
               directory_.file("ledger.db")}),
        shop_port_(port_of(shop_)),
        gateway_({sibling_program("einmal"), "gateway", "--listen", "127.0.0.1:0", "--upstream",
                  "http://127.0.0.1:" + std::to_string(shop_port_), "--store",
                  "sqlite:" + directory_.file("store.db"), "--caller", "fixed:me"}),
        line_(port_of(gateway_)) {}

  std::string effects() const { return HttpClient(shop_port_).get("/effects").body; }
  /// Of one program, with whatever stands in the way of the answer.
  std::pair<int, std::string> run(std::vector<std::string> arguments,
                                  ChildProcess::Environment environment = {}) const {
    arguments[0] = sibling_program(arguments[0]);
    environment.emplace_back("no_proxy", "127.0.0.1");
    ChildProcess process(std::move(arguments), std::move(environment));
    const auto exit = process.wait_for_exit();
    process.wait_for_output_end();
    return {exit ? exit->status : -1, process.output() + process.errors()};
  }
  static std::string url(std::uint16_t port, const std::string& path) {
    return "http://127.0.0.1:" + std::to_string(port) + path;
  }

  TempDir directory_;
  ChildProcess shop_;
  std::uint16_t shop_port_;
  ChildProcess gateway_;
  TcpGate line_;  ///< The network before the gateway.
};

TEST_F(ClientPatterns, AKilledClientFinishesWhatItBeganWhenItIsStartedAgain) {
  line_.cut_to_client_after(0);  // the order arrives, its answer never does
  const std::string orders = url(line_.port(), "/orders");
  const std::vector<std::string> command = {"einmal_order_client", directory_.file("journal"),
                                            orders, "basket 17"};
  {
    std::vector<std::string> arguments = command;
    arguments[0] = sibling_program(arguments[0]);
    ChildProcess process(arguments, {{"no_proxy", "127.0.0.1"}});
    for (int tries = 0; tries < 1000; ++tries) {
      if (effects().find("\"count\":1") != std::string::npos) break;
      (void)process.wait_for_exit(Milliseconds(10));
    }
    process.kill();
  }
  line_.cut_to_client_after(std::nullopt);
  const auto [status, said] = run(command);
  EXPECT_EQ(status, 0) << said;
  EXPECT_THAT(said, HasSubstr("ordered: "));
  EXPECT_THAT(effects(), HasSubstr("\"count\":1,"));
  EXPECT_EQ(run(command).second, said);
}

TEST_F(ClientPatterns, APutToAClientMadeUuidNeedsNoKeysAtTheServer) {
  TcpGate bare(shop_port_);
  bare.cut_to_client_after(0);
  const std::string order = url(bare.port(), "/orders/3f2c1a9e-8d4b-4c55-9a57-0c6a1f0d2b11");
  const std::vector<std::string> put = {"einmal",
                                        "request",
                                        "PUT",
                                        order,
                                        "--json",
                                        R"({"item":"tea","amount":300})",
                                        "--intent",
                                        "basket 18",
                                        "--journal",
                                        directory_.file("journal"),
                                        "--max-attempts",
                                        "2",
                                        "--deadline",
                                        "10s"};
  EXPECT_EQ(run(put).first, 4);
  bare.cut_to_client_after(std::nullopt);
  const auto [status, said] =
      run({"einmal", "request", "--resume", "--journal", directory_.file("journal")});
  EXPECT_EQ(status, 0) << said;
  EXPECT_THAT(effects(), HasSubstr("\"count\":1,"));
}

TEST_F(ClientPatterns, AKeyForEachAttemptOrdersTwiceAndAKeyForTheIntentOnce) {
  const auto attempt = [&](const std::string& key) {
    return HttpClient(line_.port())
        .post("/orders", R"({"item":"tea","amount":300})",
              {{"Content-Type", "application/json"}, {"Idempotency-Key", key}});
  };
  line_.cut_to_client_after(0);
  (void)attempt("attempt-1");
  line_.cut_to_client_after(std::nullopt);
  (void)attempt("attempt-2");
  EXPECT_THAT(effects(), HasSubstr("\"count\":2,"));
  line_.cut_to_client_after(0);
  (void)attempt("intent");
  line_.cut_to_client_after(std::nullopt);
  (void)attempt("intent");
  EXPECT_THAT(effects(), HasSubstr("\"count\":3,"));
}

TEST_F(ClientPatterns, ACronJobOrdersOncePerDayHoweverOftenItRuns) {
  const std::vector<std::string> job = {"einmal",    "request",
                                        "POST",      url(line_.port(), "/orders"),
                                        "--json",    R"({"item":"tea","amount":300})",
                                        "--intent",  "tea of 2024-05-06",
                                        "--journal", directory_.file("journal")};
  EXPECT_EQ(run(job).first, 0);
  EXPECT_EQ(run(job).first, 0);
  EXPECT_EQ(run(job).first, 0);
  EXPECT_THAT(effects(), HasSubstr("\"count\":1,"));
}

}  // namespace
}  // namespace einmal::test
