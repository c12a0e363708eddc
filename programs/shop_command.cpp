#include <fmt/core.h>
#include <signal.h>

#include <cstdio>
#include <memory>

#include "commands.hpp"
#include "einmal/base/random.hpp"
#include "shop/server.hpp"
#include "shop/shop.hpp"

namespace einmal::programs {

int shop(const ShopOptions& options) {
  // Blocked before any thread starts, so that only the wait below takes them.
  sigset_t stopping;
  sigemptyset(&stopping);
  sigaddset(&stopping, SIGTERM);
  sigaddset(&stopping, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stopping, nullptr);

  const auto ledger = shop::Ledger::open(options.ledger);
  if (!ledger) {
    fmt::print(stderr, "einmal shop: --ledger: {}\n", ledger.error().message);
    return 1;
  }
  SystemRandom random;
  shop::Shop shop(**ledger, random, {options.idempotent, options.fencing});
  const auto server = shop::Server::start(shop, options.listen.host, options.listen.port);
  if (!server) {
    fmt::print(stderr, "einmal shop: {}\n", server.error().message);
    return server.error().code == ErrorCode::invalid ? 2 : 1;
  }
  fmt::print("listening on http://{}:{}\n", options.listen.host, (*server)->port());
  std::fflush(stdout);
  int received = 0;
  sigwait(&stopping, &received);
  return 0;
}

}  // namespace einmal::programs
