#pragma once

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace einmal::programs {

/// Adds `request` with its options, read into `options`; it runs when the command line is parsed.
/// Both references must outlive that.
void add_request(CLI::App& app, RequestOptions& options, int& exit_code);

}  // namespace einmal::programs
