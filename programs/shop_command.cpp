#include <fmt/core.h>
#include <signal.h>

#include <cstdio>
#include <utility>

#include "commands.hpp"
#include "einmal/base/random.hpp"
#include "shop/server.hpp"
#include "shop/shop.hpp"
#include "store_url.hpp"

namespace einmal::programs {

int shop(const ShopOptions& options) {
  // Blocked before any thread starts, so that only the wait below takes them.
  sigset_t stopping;
  sigemptyset(&stopping);
  sigaddset(&stopping, SIGTERM);
  sigaddset(&stopping, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stopping, nullptr);

  using shop::Keeping;
  auto place = open_ledger(options.ledger, options.idempotent ? Keeping::keys : Keeping::effects);
  if (!place) {
    fmt::print(stderr, "einmal shop: --ledger: {}\n", place.error().message);
    return 1;
  }
  shop::Ledger ledger(std::move(*place));
  SystemRandom random;
  shop::Guards guards;
  guards.fencing = options.fencing;
  if (options.idempotent) guards.keys = {options.key_required, options.retention};
  shop::Shop shop(ledger, random, guards);
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
