// How many claim + complete pairs a second the PostgreSQL driver does for so many callers at once,
// against a server that stands and is migrated. bench/postgres runs it beside pgbench.
//
//   driver_rate CONNINFO CALLERS SECONDS [waiters]
//
// Prints the rate. `waiters`: a second store says meanwhile that its clients wait for completions,
// so that every commit is followed by a message.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "callers.hpp"
#include "einmal/postgres/postgres_store.hpp"

namespace {

std::unique_ptr<einmal::Store> open(const char* conninfo, einmal::SystemClock& clock,
                                    einmal::SystemRandom& random) {
  auto store = einmal::open_postgres_store(conninfo, {}, clock, random);
  if (store) return std::move(*store);
  std::fprintf(stderr, "driver_rate: %s\n", store.error().message.c_str());
  std::exit(1);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: driver_rate CONNINFO CALLERS SECONDS [waiters]\n");
    return 2;
  }
  einmal::SystemClock clock;
  einmal::SystemRandom random;
  const auto store = open(arguments[1], clock, random);
  std::unique_ptr<einmal::Store> waiting;
  std::atomic<int> heard{0};
  if (count > 4 && std::strcmp(arguments[4], "waiters") == 0) {
    waiting = open(arguments[1], clock, random);
    waiting->on_foreign_change([&] { ++heard; });
    waiting->await_foreign_changes(true);
  }
  // Numbers of their own for each run on the same server, below the 48 bits that a key shows.
  const std::uint64_t first = random.below(std::uint64_t{1} << 47);
  einmal::bench::Callers callers(*store, std::strtoul(arguments[2], nullptr, 10), first);
  callers.rate(std::chrono::milliseconds(500));  // connections and plans are made
  std::printf("%.0f\n", callers.rate(std::chrono::duration<double>(std::atof(arguments[3]))));
  if (waiting) waiting->on_foreign_change({});
  return 0;
}
