#pragma once

#include <string>
#include <vector>

#include "einmal/testing/process.hpp"

namespace einmal::test {

/// What one run of `einmal ARGUMENTS...` said.
struct Ran {
  int status = -1;  ///< Exit code; -1 when it did not end or was killed.
  std::string output, errors;
};

inline Ran run_einmal(std::vector<std::string> arguments,
                      ChildProcess::Environment environment = {}) {
  arguments.insert(arguments.begin(), sibling_program("einmal"));
  ChildProcess process(std::move(arguments), std::move(environment));
  const auto exit = process.wait_for_exit();
  process.wait_for_output_end();
  return {exit ? exit->status : -1, process.output(), process.errors()};
}

}  // namespace einmal::test
