#pragma once

#include <string>
#include <vector>

#include "command_words.hpp"

namespace einmal::programs {

/// One word that may stand where the cursor is.
struct Candidate {
  std::string word, help;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};
struct Completion {
  std::vector<Candidate> words;
  bool files = false;  ///< A file may stand there as well.
};

/// What can continue a command line whose words after the program's name are `words`; the last of
/// them is the one under the cursor, empty if it is not begun.
Completion complete(const CommandWords& program, const std::vector<std::string>& words);

/// What the shell scripts read: one candidate a line, a tab before its help; the line ":files"
/// where files may stand.
std::string as_lines(const Completion& completion);

/// The script that teaches a shell to ask `einmal`; empty for any other shell than bash and zsh.
std::string completion_script(const std::string& shell);

}  // namespace einmal::programs
