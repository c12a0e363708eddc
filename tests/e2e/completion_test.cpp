#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>

#include "einmal/testing/process.hpp"
#include "support/command.hpp"

/// What shells offer, and what the manual page lists.

namespace einmal::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using Words = std::set<std::string>;

Words lines_of(const std::string& text) {
  std::istringstream lines(text);
  Words words;
  for (std::string line; std::getline(lines, line);) words.insert(line.substr(0, line.find('\t')));
  return words;
}

Words completions(std::vector<std::string> words) {
  words.insert(words.begin(), "__complete");
  return lines_of(run_einmal(std::move(words)).output);
}

TEST(Completion, offers_commands_options_and_the_values_of_options) {
  EXPECT_THAT(completions({""}), IsSupersetOf({"gateway", "records", "request", "completion"}));
  EXPECT_THAT(completions({"rec"}), UnorderedElementsAre("records"));
  EXPECT_THAT(completions({"records", ""}),
              UnorderedElementsAre("list", "show", "resolve", "forget", "doubt", "stats"));
  EXPECT_THAT(completions({"records", "list", "--st"}), UnorderedElementsAre("--store", "--state"));
  EXPECT_THAT(completions({"records", "list", "--state", "f"}),
              UnorderedElementsAre("failed", "freed"));
  EXPECT_THAT(completions({"records", "list", "--store", ""}),
              UnorderedElementsAre("sqlite:", "postgresql://"));
  EXPECT_THAT(completions({"records", "list", "--store", "sqlite:ein"}),
              UnorderedElementsAre(":files"));
  EXPECT_THAT(completions({"gateway", "--config", ""}), UnorderedElementsAre(":files"));
  EXPECT_THAT(completions({"records", "list", "--json", "--re"}), UnorderedElementsAre("--reveal"))
      << "a flag takes no value";
  EXPECT_THAT(completions({"completion", ""}), UnorderedElementsAre("bash", "zsh"));
  EXPECT_THAT(completions({"no-such-command", "x"}), UnorderedElementsAre());
  EXPECT_EQ(run_einmal({"completion", "fish"}).status, 2);
}

class Shell : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(directory_.file("gateway.toml")) << "\n"; }

  /// What bash offers for `line` with the cursor at its end.
  Words bash(const std::string& line) const {
    const std::string script = R"(
      cd "$3" && PATH="$2:$PATH" && source <(einmal completion bash) || exit 1
      compopt() { :; }
      COMP_LINE=$1 COMP_POINT=${#1}
      # As readline splits: at blanks, and at each colon.
      read -ra COMP_WORDS <<< "${1//:/ : }"
      [[ $1 == *[[:space:]:] ]] && COMP_WORDS+=("")
      COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
      _einmal
      printf '%s\n' "${COMPREPLY[@]}")";
    const auto program = sibling_program("einmal");
    ChildProcess shell({"/bin/bash", "-c", script, "bash", line,
                        program.substr(0, program.rfind('/')), directory_.path().string()});
    EXPECT_EQ(shell.wait_for_exit(), (Exit{0, 0})) << shell.errors();
    shell.wait_for_output_end();
    EXPECT_EQ(shell.errors(), "");
    return lines_of(shell.output());
  }

  TempDir directory_;
};

TEST_F(Shell, bash_completes_commands_options_files_and_words_with_colons) {
  EXPECT_THAT(bash("einmal rec"), UnorderedElementsAre("records"));
  EXPECT_THAT(bash("einmal records resolve --comp"), UnorderedElementsAre("--completed"));
  EXPECT_THAT(bash("einmal records list --state "), Contains("uncertain"));
  EXPECT_THAT(bash("einmal gateway --config gate"), UnorderedElementsAre("gateway.toml"));
  EXPECT_THAT(bash("einmal sweep --store sqlite:gate"), UnorderedElementsAre("gateway.toml"));
  EXPECT_THAT(bash("einmal sweep --store sq"), UnorderedElementsAre("sqlite:"));
  EXPECT_THAT(bash("einmal sweep --store postgresql:"), UnorderedElementsAre("//"));
}

TEST_F(Shell, zsh_reads_its_script_and_offers_what_the_program_says) {
  ChildProcess which({"/bin/sh", "-c", "command -v zsh"});
  const auto found = which.wait_for_exit();
  if (!found || found->status != 0) {
    std::cout << "zsh is not installed: its completion is not run\n";
    return;
  }
  // The completion system's own functions, as far as the script calls them.
  const std::string script = R"(
    PATH="$2:$PATH"
    compdef() { :; }
    compset() { :; }
    _files() { print -r -- FILES; }
    _describe() { print -rl -- "${(@)described}"; }
    source <(einmal completion zsh) || exit 1
    words=("${(@s: :)1}") CURRENT=$#words
    _einmal)";
  const auto zsh = [&](const std::string& line) {
    const auto program = sibling_program("einmal");
    ChildProcess shell({"/usr/bin/env", "zsh", "-f", "-c", script, "zsh", line,
                        program.substr(0, program.rfind('/'))});
    shell.wait_for_exit();
    shell.wait_for_output_end();
    EXPECT_EQ(shell.errors(), "");
    return shell.output();
  };
  EXPECT_THAT(zsh("einmal rec"), HasSubstr("records:Look at records"));
  EXPECT_THAT(zsh("einmal records list --store sq"), HasSubstr("sqlite\\::a file"));
  EXPECT_THAT(zsh("einmal gateway --config x"), HasSubstr("FILES"));
}

TEST(Manual, lists_every_command_and_option_that_help_shows) {
  const auto page = run_einmal({"manual"}).output;
  const std::vector<std::vector<std::string>> commands{{"gateway"},
                                                       {"demo"},
                                                       {"shop"},
                                                       {"records", "list"},
                                                       {"records", "show"},
                                                       {"records", "resolve"},
                                                       {"records", "forget"},
                                                       {"records", "doubt"},
                                                       {"records", "stats"},
                                                       {"sweep"},
                                                       {"migrate"},
                                                       {"doctor"},
                                                       {"probe"},
                                                       {"request"},
                                                       {"completion"}};
  for (auto command : commands) {
    std::string full = "einmal";
    for (const auto& word : command) full += " " + word;
    const auto at = page.find(".SS \"" + full + "\"");
    ASSERT_NE(at, std::string::npos) << full;
    const auto section = page.substr(at, page.find(".SS", at + 1) - at);
    command.emplace_back("--help");
    std::istringstream help(run_einmal(command).output);
    for (std::string line; std::getline(help, line);) {
      const auto dashes = line.find("--");
      if (line.find_first_not_of(' ') != 2 || dashes == std::string::npos || dashes > 5) continue;
      auto option = line.substr(dashes, line.find_first_of(" ,", dashes) - dashes);
      if (option == "--help") continue;
      for (auto i = option.find('-'); i != std::string::npos; i = option.find('-', i + 2))
        option.insert(i, "\\");
      EXPECT_THAT(section, HasSubstr("\\fB" + option + "\\fR")) << full;
    }
  }
}

}  // namespace
}  // namespace einmal::test
