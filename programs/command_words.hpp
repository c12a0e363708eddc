#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace einmal::programs {

/// What the command line understands, in plain words: what `einmal completion` completes and what
/// `einmal manual` describes. Read from the parser itself, so neither can fall behind it.
struct OptionWords {
  std::vector<std::string> names;    ///< "-o", "--output"; of a positional its only name, bare.
  std::string value;                 ///< What it takes: FILE, DURATION ...; empty: a flag.
  std::vector<std::string> choices;  ///< All values there are, where they are few.
  std::string help;
  bool required = false;
  bool repeated = false;
};
struct CommandWords {
  std::string name, help, footer;
  std::vector<OptionWords> options, positionals;
  std::vector<CommandWords> commands;
};

CommandWords words_of(const CLI::App& app);

}  // namespace einmal::programs
