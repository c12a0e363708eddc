#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/command.hpp"
#include "support/gateway.hpp"

/// docs/uncertain.md is what people follow at night: each of its command blocks is run on an
/// uncertain record, beside a running gateway, and each of its configurations is checked.

namespace einmal::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// The blocks of the page that are marked as `language`.
std::vector<std::string> blocks(const std::string& language) {
  std::ifstream page(EINMAL_SOURCE_DIR "/docs/uncertain.md");
  std::vector<std::string> found;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "```" + language) {
      inside = true;
      found.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      found.back() += line + "\n";
    }
  }
  return found;
}

class Runbook : public GatewayTest {
 protected:
  void open_as_on_the_page() {
    std::ofstream(directory_.file("outcome-tokens")) << "0123456789abcdef0123456789abcdef\n";
    open({.gateway = "outcome_tokens = \"" + directory_.file("outcome-tokens") + "\"\n",
          .operations = GatewaySetup{}.operations + "[metrics]\nlisten = \"127.0.0.1:0\"\n"});
    const auto line = gateway_->process().wait_for_line("metrics on http");
    ASSERT_TRUE(line);
    metrics_ = line->substr(line->find("http://"));
  }
  /// The id of an operation whose outcome is unknown.
  std::string uncertain(const std::string& key) {
    upstream_.next(Play().reset());
    const auto answer = send(order(key));
    EXPECT_EQ(in_words(answer), "504 uncertain outcome-uncertain");
    const auto operation = answer.member("operation");
    return operation.substr(operation.rfind('/') + 1);
  }
  Ran run(const std::string& block, const std::string& id) const {
    const auto program = sibling_program("einmal");
    const std::string script = "cd '" + directory_.path().string() + "' && PATH='" +
                               program.substr(0, program.rfind('/')) + "':$PATH\n" + block;
    ChildProcess shell({"/bin/bash", "-euo", "pipefail", "-c", script},
                       {{"STORE", gateway_->store_url()},
                        {"METRICS", metrics_},
                        {"GATEWAY", "http://127.0.0.1:" + std::to_string(gateway_->port())},
                        {"ID", id}});
    const auto exit = shell.wait_for_exit();
    shell.wait_for_output_end();
    return {exit ? exit->status : -1, shell.output(), shell.errors()};
  }

  std::string metrics_;
};

TEST_F(Runbook, each_block_of_commands_does_what_the_page_says) {
  open_as_on_the_page();
  // The gauge of uncertain records is measured every few seconds.
  uncertain("first");
  EXPECT_TRUE(eventually([&] {
    return HttpClient(
               static_cast<std::uint16_t>(std::stoi(metrics_.substr(metrics_.rfind(':') + 1))))
               .get("/metrics")
               .body.find("einmal_records{state=\"uncertain\"} 1") != std::string::npos;
  }));
  const auto commands = blocks("sh");
  ASSERT_GE(commands.size(), 8u);
  int number = 0;
  for (const auto& block : commands) {
    SCOPED_TRACE(block);
    const auto key = "K" + std::to_string(++number);
    // Generations count on; what the page calls 1 is that of the record.
    const auto id = uncertain(key);
    const auto shown =
        run_einmal({"records", "show", "--store", gateway_->store_url(), "--id", id, "--json"});
    const auto at = shown.output.find("\"generation\":") + 13;
    const auto generation = shown.output.substr(at, shown.output.find(',', at) - at);
    auto as_it_is = block;
    for (const std::string named : {"--generation ", "\"generation\": "}) {
      if (const auto found = as_it_is.find(named + "1"); found != std::string::npos)
        as_it_is.replace(found + named.size(), 1, generation);
    }
    const auto ran = run(as_it_is, id);
    EXPECT_EQ(ran.status, 0) << ran.output << ran.errors;
    EXPECT_NE(ran.output, "");
    const auto then = in_words(send(order(key)));
    const bool free = block.find("--free") != std::string::npos;
    if (block.find("--completed") != std::string::npos ||
        block.find("/outcome") != std::string::npos)
      EXPECT_EQ(then, "201 resolved");
    else if (block.find("--failed") != std::string::npos)
      EXPECT_EQ(then, "402 resolved");
    else
      EXPECT_EQ(then, free ? "201 executed" : "504 uncertain outcome-uncertain");
  }
}

TEST_F(Runbook, its_configurations_are_accepted) {
  const auto configurations = blocks("toml");
  ASSERT_GE(configurations.size(), 2u);
  std::ofstream(directory_.file("outcome-tokens")) << "0123456789abcdef0123456789abcdef\n";
  for (const auto& block : configurations) {
    SCOPED_TRACE(block);
    const auto file = directory_.file("gateway.toml");
    std::ofstream out(file);
    out << "[gateway]\nupstream = \"http://127.0.0.1:9000\"\n";
    auto relative = block.starts_with("[gateway]\n") ? block.substr(10) : block;
    if (const auto at = relative.find("\"outcome-tokens\""); at != std::string::npos)
      relative.replace(at, 16, "\"" + directory_.file("outcome-tokens") + "\"");
    out << relative << "[store]\nurl = \"sqlite:" << directory_.file("x.db")
        << "\"\n[caller]\nsource = \"fixed:one\"\n";
    out.close();
    const auto checked = run_einmal({"gateway", "--config", file, "--check"});
    EXPECT_EQ(checked.status, 0) << checked.output << checked.errors;
  }
}

}  // namespace
}  // namespace einmal::test
