#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>

#include "support/command.hpp"
#include "support/gateway.hpp"

/// Starting a gateway: what it refuses, in which words, and that nothing is lost by it.

namespace einmal::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Start : public GatewayTest {
 protected:
  Ran with(GatewaySetup setup, std::vector<std::string> more = {}) {
    if (setup.upstream.empty()) setup.upstream = upstream_.url();
    GatewayProcess process(directory_.path().string(), std::move(setup));
    std::ofstream(process.config_file()) << process.config();
    more.insert(more.begin(), {"gateway", "--config", process.config_file()});
    return run_einmal(std::move(more));
  }
};

TEST_F(Start, is_refused_with_file_and_line_when_the_configuration_is_wrong) {
  const auto unknown = with({.gateway = "lisen = \"127.0.0.1:1\"\n"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.errors, AllOf(HasSubstr(".toml:4:"), HasSubstr("lisen")));
  const auto duration = with({.defaults = "retention = \"24\"\n"});
  EXPECT_EQ(duration.status, 2);
  EXPECT_THAT(duration.errors, HasSubstr("retention"));
  EXPECT_EQ(with({.caller = "guess"}).status, 2);
  EXPECT_EQ(run_einmal({"gateway", "--config", "/no/such/file"}).status, 2);
  EXPECT_EQ(run_einmal({"gateway"}).status, 2);
  EXPECT_EQ(run_einmal({"gateway", "--upstream", "http://127.0.0.1:1"}).status, 2)
      << "the caller is never guessed";
  EXPECT_EQ(run_einmal({"gateway", "--no-such-option"}).status, 2);
  EXPECT_EQ(run_einmal({}).status, 2);
}

TEST_F(Start, is_refused_when_the_port_is_in_use) {
  Listener taken;
  const auto in_use = run_einmal(
      {"gateway", "--listen", "127.0.0.1:" + std::to_string(taken.port()), "--upstream",
       upstream_.url(), "--caller", "fixed:a", "--store", "sqlite:" + directory_.file("x.db")});
  EXPECT_EQ(in_use.status, 1);
  EXPECT_THAT(in_use.errors, HasSubstr("listen"));
}

TEST_F(Start, is_refused_on_a_store_that_is_not_ours_or_cannot_be_written) {
  const auto text = directory_.file("text.db");
  std::ofstream(text) << std::string(5000, 'x');
  const auto foreign = with({.store = "sqlite:" + text});
  EXPECT_EQ(foreign.status, 1) << foreign.errors;
  EXPECT_THAT(foreign.errors, HasSubstr(text));
  EXPECT_EQ(std::filesystem::file_size(text), 5000u) << "left untouched";
  EXPECT_NE(with({.store = "sqlite:/no/such/directory/einmal.db"}).status, 0);
  EXPECT_EQ(with({.store = "mysql://x"}).status, 2);
}

TEST_F(Start, is_refused_while_live_records_belong_to_operations_nobody_configured) {
  open();
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  gateway_->kill();
  const std::string renamed = "[[operation]]\nname = \"new-name\"\nmatch = \"POST /orders\"\n";
  const auto refused = with({.operations = renamed}, {"--check"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors, AllOf(HasSubstr("create-order"), HasSubstr("retired")));
  const auto retired =
      with({.gateway = "retired = [\"create-order\"]\n", .operations = renamed}, {"--check"});
  EXPECT_EQ(retired.status, 0) << retired.errors;
  EXPECT_EQ(with({}, {"--check"}).status, 0);
}

TEST_F(Start, can_be_checked_beside_a_running_gateway_and_without_making_a_store) {
  open();
  EXPECT_EQ(run_einmal({"gateway", "--check", "--config", gateway_->config_file()}).status, 0);
  const auto fresh = directory_.file("fresh.db");
  EXPECT_EQ(with({.store = "sqlite:" + fresh}, {"--check"}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(fresh));
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
}

TEST_F(Start, is_explained_value_by_value) {
  const auto told = with({.defaults = "retention = \"48h\"\n"}, {"--explain"});
  EXPECT_EQ(told.status, 0) << told.errors;
  EXPECT_THAT(told.output,
              AllOf(HasSubstr("create-order"), HasSubstr("= \"2d\" "), HasSubstr("[defaults]")));
}

TEST_F(Start, passes_on_that_an_operator_accepts_the_clock_only_within_the_hour) {
  open({.store_lines = "accept_time = 2001-02-03T04:05:06Z\n"});
  EXPECT_THAT(gateway_->process().errors(), HasSubstr("accept_time"));
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::ostringstream text;
  text << "accept_time = " << std::put_time(&parts, "%Y-%m-%dT%H:%M:%SZ") << "\n";
  gateway_->kill();
  gateway_->setup().store_lines = text.str();
  gateway_->restart();
  EXPECT_THAT(gateway_->process().errors(), Not(HasSubstr("accept_time")));
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
}

TEST_F(Start, quickly_protects_every_post_and_patch) {
  ChildProcess quick({sibling_program("einmal"), "gateway", "--listen", "127.0.0.1:0", "--upstream",
                      upstream_.url(), "--caller", "fixed:me", "--store",
                      "sqlite:" + directory_.file("quick.db")});
  const auto line = quick.wait_for_line("listening on http://");
  ASSERT_TRUE(line) << quick.errors();
  const HttpClient client(
      static_cast<std::uint16_t>(std::stoi(line->substr(line->rfind(':') + 1))));
  for (const auto* method : {"POST", "PATCH"}) {
    HttpRequest request;
    request.method = method;
    request.target = "/anything/else";
    request.headers = {{"Idempotency-Key", "K"}};
    EXPECT_EQ(in_words(client.send(request)), "201 executed");
    EXPECT_EQ(in_words(client.send(request)), "201 replayed");
  }
  EXPECT_EQ(client.post("/anything", "x").status, 201) << "the key is optional";
  EXPECT_EQ(client.get("/anything").status, 201);
  EXPECT_EQ(upstream_.count(), 4u);
}

TEST(CommandLine, explains_itself) {
  EXPECT_EQ(run_einmal({"--help"}).status, 0);
  EXPECT_THAT(run_einmal({"--version"}).output, HasSubstr("einmal 0."));
  for (const auto* command : {"gateway", "demo", "shop", "records", "sweep", "migrate", "doctor"}) {
    const auto help = run_einmal({command, "--help"});
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_THAT(run_einmal({"--help"}).output, HasSubstr(command));
  }
}

}  // namespace
}  // namespace einmal::test
