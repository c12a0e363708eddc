#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

#include "books_in_tests.hpp"
#include "support/command.hpp"
#include "support/shop.hpp"

/// `einmal probe` against `einmal shop --idempotent`, with every option that it can use.

namespace einmal::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class ProbedShop : public ::testing::Test {
 protected:
  ~ProbedShop() override {
    // The one that the probe's start command left behind.
    std::ifstream file(pid_file_);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    int pid = 0;
    std::from_chars(text.data(), text.data() + text.size(), pid);
    if (pid > 1) ::kill(pid, SIGKILL);
  }

  /// Starts the shop as a start command would and waits until it listens; its URL.
  std::string start() {
    std::string url;
    {
      ShopProcess first(ShopProcess::Ledger{books_}, {"--idempotent"});
      url = first.url();
    }
    command_ = sibling_program("einmal") + " shop --idempotent --retention 2s --ledger '" + books_ +
               "' --listen " + url.substr(url.rfind('/') + 1) + " >/dev/null 2>&1 & echo $! > " +
               pid_file_;
    ChildProcess shell({"/bin/sh", "-c", command_});
    shell.wait_for_exit();
    const auto port = static_cast<std::uint16_t>(std::stoul(url.substr(url.rfind(':') + 1)));
    EXPECT_TRUE(eventually([&] {
      try {
        return HttpClient(port).get("/effects").status == 200;
      } catch (const std::exception&) {
        return false;
      }
    }));
    return url;
  }

  TempDir directory_;
  const std::string books_ = new_books(directory_.path().string());
  const std::string pid_file_ = directory_.file("shop.pid");
  std::string command_;
};

TEST_F(ProbedShop, passes_everything_that_can_be_judged) {
  const auto url = start();
  const auto ran = run_einmal({"probe",
                               "--target",
                               url,
                               "--request",
                               "POST /orders",
                               "--body",
                               R"({"item":"coffee","amount":300})",
                               "--header",
                               "X-Caller: alice",
                               "--other-caller",
                               "X-Caller: bob",
                               "--effects",
                               "GET /effects",
                               "--effects-pointer",
                               "/count",
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
                               "--retention",
                               "2s",
                               "--crash-command",
                               "kill -9 $(cat " + pid_file_ + ")",
                               "--start-command",
                               command_,
                               "--pace",
                               "0ms",
                               "--settle",
                               "50ms"});
  EXPECT_EQ(ran.status, 0) << ran.output << ran.errors;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("37 passed, 0 failed, 2 not judged"),
                                ContainsRegex("stale-owner +not judged"),
                                ContainsRegex("dependency-outage +not judged")));
}

}  // namespace
}  // namespace einmal::test
