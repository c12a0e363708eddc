#pragma once

#include <cstdint>
#include <string>

/// The subcommands of `einmal`. Each takes what its options said and returns the exit code:
/// 0 done, 1 the command failed, 2 usage or configuration error. Each prints for a person;
/// errors go to standard error and name the option or file:line.

namespace einmal::programs {

struct ListenAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};

struct ShopOptions {
  ListenAddress listen;
  std::string ledger;
  bool idempotent = false;
};
/// Serves the demo shop until SIGTERM or SIGINT.
int shop(const ShopOptions& options);

}  // namespace einmal::programs
