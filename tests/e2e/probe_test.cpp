#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <charconv>
#include <fstream>
#include <iterator>

#include "einmal/testing/certificate.hpp"
#include "einmal/testing/process.hpp"
#include "support/command.hpp"

/// `einmal probe` as its users run it: against the demo shop, bare and behind the gateway.

namespace einmal::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// "listening on URL" of a process.
std::string url_of(ChildProcess& process) {
  const auto line = process.wait_for_line("listening on ");
  if (!line) throw std::runtime_error("not started: " + process.errors());
  return line->substr(std::string_view("listening on ").size());
}

class EinmalProbe : public ::testing::Test {
 protected:
  EinmalProbe()
      : shop_({sibling_program("einmal"), "shop", "--listen", "127.0.0.1:0", "--ledger",
               directory_.file("ledger.db")}),
        shop_url_(url_of(shop_)) {}
  ~EinmalProbe() override {
    // The gateway that the probe's start command left behind.
    int pid = 0;
    const auto text = file_text(directory_.file("gateway.pid"));
    std::from_chars(text.data(), text.data() + text.size(), pid);
    if (pid > 1) ::kill(pid, SIGKILL);
  }

  void configure(const std::string& listen, const std::string& more = {}) {
    std::ofstream(directory_.file("einmal.toml"))
        << "[gateway]\nlisten = \"" << listen << "\"\nupstream = \"" << shop_url_
        << "\"\n[store]\nurl = \"sqlite:" << directory_.file("einmal.db")
        << "\"\n[caller]\nsource = \"header:X-Caller\"\n[limits]\nwaiters_per_key = 32\n"
           "[defaults]\nin_flight = \"wait\"\nlease = \"2s\"\nretention = \"2s\"\n"
           "[[operation]]\nname = \"create-order\"\nmatch = \"POST /orders\"\n"
           "[[operation]]\nname = \"pay\"\nmatch = \"POST /payments\"\n"
        << more;
  }

  /// Starts the gateway as a start command would and waits until it listens; its URL.
  std::string start_gateway() {
    configure("127.0.0.1:0");
    ChildProcess first(
        {sibling_program("einmal"), "gateway", "--config", directory_.file("einmal.toml")});
    auto url = url_of(first);
    first.kill();
    configure(url.substr(url.rfind('/') + 1));
    ChildProcess shell({"/bin/sh", "-c", start_command()});
    shell.wait_for_exit();
    return url;
  }
  std::string start_command() const {
    return sibling_program("einmal") + " gateway --config " + directory_.file("einmal.toml") +
           " >/dev/null 2>&1 & echo $! > " + directory_.file("gateway.pid");
  }

  static Ran probe(const std::string& target, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"probe",
                                       "--target",
                                       target,
                                       "--request",
                                       "POST /orders",
                                       "--body",
                                       R"({"item":"coffee","amount":300})",
                                       "--header",
                                       "X-Caller: alice",
                                       "--effects",
                                       "GET /effects",
                                       "--effects-pointer",
                                       "/count",
                                       "--other-caller",
                                       "X-Caller: bob",
                                       "--other-request",
                                       "POST /payments",
                                       "--other-body",
                                       R"({"order":"a","amount":5})",
                                       "--failing-body",
                                       R"({"item":"coffee","amount":300,"card":"declined"})",
                                       "--slow-header",
                                       "X-Demo-Delay: 200ms",
                                       "--fault-header",
                                       "X-Demo-Fault: drop-after-commit",
                                       "--mutate",
                                       "DELETE /orders/{/id}",
                                       "--pace",
                                       "0ms",
                                       "--settle",
                                       "50ms"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_einmal(std::move(arguments));
  }

  TempDir directory_;
  ChildProcess shop_;
  std::string shop_url_;
};

TEST_F(EinmalProbe, finds_the_bare_shop_wanting) {
  const auto ran = probe(shop_url_, {"--junit", directory_.file("report.xml")});
  EXPECT_EQ(ran.status, 1) << ran.output << ran.errors;
  for (const auto* name : {"repeated", "two-at-once", "many-at-once", "answer-lost", "body-changed",
                           "client-hangs-up", "outcome-unknown"})
    EXPECT_THAT(ran.output, ContainsRegex(std::string(name) + " +FAILED")) << name;
  EXPECT_THAT(ran.output, ContainsRegex("key-missing +passed"));
  EXPECT_THAT(file_text(directory_.file("report.xml")), HasSubstr("<failure message="));
}

TEST_F(EinmalProbe, lets_the_shop_behind_the_gateway_pass_everything) {
  const auto url = start_gateway();
  ASSERT_TRUE(eventually([&] { return probe(url, {"--only", "repeated"}).status == 0; }));
  const auto ran =
      probe(url, {"--retention", "2s", "--start-command", start_command(), "--crash-command",
                  "kill -9 $(cat " + directory_.file("gateway.pid") + ")"});
  EXPECT_EQ(ran.status, 0) << ran.output << ran.errors;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("37 passed, 0 failed, 2 not judged"),
                                ContainsRegex("stale-owner +not judged"),
                                ContainsRegex("dependency-outage +not judged")));
}

TEST_F(EinmalProbe, speaks_tls_to_whom_it_trusts) {
  const auto made = make_certificate(directory_.path().string(), "server", "IP:127.0.0.1");
  configure("127.0.0.1:0",
            "[tls]\ncertificate = \"" + made.certificate + "\"\nkey = \"" + made.key + "\"\n");
  ChildProcess gateway(
      {sibling_program("einmal"), "gateway", "--config", directory_.file("einmal.toml")});
  const auto heard = url_of(gateway);
  const auto url = "https://" + heard.substr(heard.rfind('/') + 1);
  const auto unknown = probe(url);
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.errors, HasSubstr("certificate"));
  EXPECT_EQ(probe(url, {"--insecure", "--only", "repeated"}).status, 0);
  const auto ran = probe(url, {"--ca", made.certificate, "--skip", "failure-replayed"});
  EXPECT_EQ(ran.status, 0) << ran.output << ran.errors;
  EXPECT_THAT(
      ran.output,
      AllOf(HasSubstr("33 passed, 0 failed"), ContainsRegex("slow-reader +passed"),
            ContainsRegex("answer-lost +passed"), ContainsRegex("client-half-closes +passed")));
}

TEST_F(EinmalProbe, writes_json_and_tells_strictly) {
  const std::vector<std::string> only{"--only", "repeated", "--json"};
  const auto ran = probe(shop_url_, only);
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.output, AllOf(::testing::StartsWith("{\"target\":\"POST http://127.0.0.1:"),
                                HasSubstr(R"("verdict":"failed")"), Not(HasSubstr("FAILED"))));
  EXPECT_EQ(probe(shop_url_, {"--only", "stale-owner"}).status, 0);
  EXPECT_EQ(probe(shop_url_, {"--only", "stale-owner", "--strict"}).status, 1);
}

TEST_F(EinmalProbe, exits_with_2_for_what_it_cannot_understand) {
  EXPECT_EQ(run_einmal({"probe"}).status, 2);
  EXPECT_EQ(probe(shop_url_, {"--retention", "3"}).status, 2);
  EXPECT_EQ(probe(shop_url_, {"--only", "nonsense"}).status, 2);
  EXPECT_EQ(probe(shop_url_, {"--crash-command", "true"}).status, 2);
  EXPECT_EQ(probe(shop_url_, {"--concurrency", "65"}).status, 2);
  const auto away = probe("http://192.0.2.1");
  EXPECT_EQ(away.status, 2);
  EXPECT_THAT(away.errors, HasSubstr("--yes-this-host"));
  EXPECT_EQ(run_einmal({"probe", "--list"}).status, 0);
}

TEST_F(EinmalProbe, exits_with_1_when_the_target_does_not_serve_the_request) {
  const auto nobody = probe("http://127.0.0.1:" + std::to_string(refused_port()));
  EXPECT_EQ(nobody.status, 1);
  EXPECT_THAT(nobody.errors, HasSubstr("does not answer"));
  EXPECT_EQ(probe(shop_url_, {"--request", "POST /nowhere"}).status, 2);  // Given twice.
}

}  // namespace
}  // namespace einmal::test
