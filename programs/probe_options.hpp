#pragma once

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace einmal::programs {

/// Adds `probe` with its options, read into `options`; it runs when the command line is parsed.
/// Both references must outlive that.
void add_probe(CLI::App& app, ProbeOptions& options, int& exit_code);

}  // namespace einmal::programs
