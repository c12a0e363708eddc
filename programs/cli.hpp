#pragma once

#include "einmal/engine/observer.hpp"

namespace einmal::programs {

/// The whole of `einmal`: reads the command line, runs one subcommand and returns its exit code
/// (0 done, 1 failed, 2 usage or configuration error). `observer` hears what a gateway's engine
/// does.
int run(int argc, char** argv, Observer& observer);

}  // namespace einmal::programs
