#include "command_words.hpp"

#include <CLI/CLI.hpp>
#include <sstream>

namespace einmal::programs {

namespace {

/// "{a,b}", "TEXT:{a,b}" -> a, b.
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices;
  const auto open = type.find('{');
  const auto close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

/// "UINT:INT in [1 - 1000]" and "{a,b}" are for the parser; people read a word.
std::string value_word(const std::string& type, bool has_choices) {
  if (has_choices) return "WORD";
  return type.starts_with("UINT") || type.starts_with("INT") ? "NUMBER" : type;
}

OptionWords words_of(const CLI::Option& option) {
  OptionWords words;
  if (option.nonpositional()) {
    for (const auto& name : option.get_snames()) words.names.push_back("-" + name);
    for (const auto& name : option.get_lnames()) words.names.push_back("--" + name);
  } else {
    words.names.push_back(option.get_name(true, false));
  }
  if (option.get_items_expected_max() != 0) {
    words.choices = choices_of(option.get_type_name());
    words.value = value_word(option.get_type_name(), !words.choices.empty());
  }
  words.help = option.get_description();
  words.required = option.get_required();
  words.repeated = option.get_items_expected_max() > 1;
  return words;
}

}  // namespace

CommandWords words_of(const CLI::App& app) {
  CommandWords words{app.get_name(), app.get_description(), app.get_footer(), {}, {}, {}};
  for (const auto* option : app.get_options()) {
    auto& into = option->nonpositional() ? words.options : words.positionals;
    into.push_back(words_of(*option));
  }
  const auto any = [](const CLI::App*) { return true; };
  for (const auto* command : app.get_subcommands(any)) words.commands.push_back(words_of(*command));
  return words;
}

}  // namespace einmal::programs
