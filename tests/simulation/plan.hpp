#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"

namespace einmal::simulation {

/// A source of chance that depends on what it is for, so that leaving one thing out of a plan does
/// not change the others.
SeededRandom stream(std::uint64_t seed, std::uint64_t what, std::uint64_t which = 0,
                    std::uint64_t again = 0);

/// What one operation promises; a scope belongs to one operation.
struct OperationConfig {
  Duration lease{};  ///< Zero: none.
  bool takeover = false;
  Duration retention{};
  bool refuse = false;
  Duration tombstone{};
  /// Gateways ask the upstream's ledger about unknown outcomes, and free what has left no trace
  /// this long. Zero: they do not. Longer than any request of a history can be on its way: a
  /// process stands still between its last look and its first byte for 12 s at most, the way is 6
  /// s.
  Duration quiescence{};
};

/// One intent of a client: the same key and body, sent until it is answered for good, and a few
/// times more.
struct Intent {
  int number = 0;
  Duration at{};
  int scope = 0;
  int body = 1;
  bool waits = false;    ///< in_flight = wait
  bool careful = false;  ///< Its claims promise `uncertain` even where the operation says takeover.
  int tries = 1;         ///< At most.
  int repeats = 0;       ///< Sent again after it was answered for good.
  Duration patience{};   ///< Hangs up and tries again.
  Duration repeat_after{};
};

enum class FaultKind : std::uint8_t {
  crash,             ///< kill -9 of a gateway; it starts again after `lasts`
  shutdown,          ///< SIGTERM of a gateway; it starts again after `lasts`
  pause,             ///< SIGSTOP and, after `lasts`, SIGCONT
  strand_claim,      ///< the next claim of a gateway is durable; its answer is lost, and late
  outage,            ///< the store refuses everything
  stall,             ///< the store answers late
  doubt,             ///< answers of the store are in doubt: written or not
  network,           ///< requests and answers between clients and gateways are lost, late, doubled
  wall_clock,        ///< the store's wall clock jumps ahead by `lasts`
  wall_clock_back,   ///< ... back
  reboot,            ///< the store's machine restarts: another boot
  resolve,           ///< an operator settles what is uncertain, as far as it can be known
  resolve_by_force,  ///< an operator frees or settles without knowing
  doubt_record,      ///< an operator doubts a record without lease
  forget,            ///< an operator forgets a settled record
  accept_time,
};

struct Fault {
  int number = 0;
  Duration at{};
  FaultKind kind{};
  int which = 0;  ///< Gateway, or scope.
  Duration lasts{};
};

/// A history before it is played: everything that a seed decides ahead. What chance decides on the
/// way (delays, what the upstream does) comes from streams of the seed.
struct Plan {
  std::uint64_t seed = 0;
  int gateways = 1;
  bool store_in_process = false;  ///< The store's writer lives and dies with the gateway (an
                                  ///< embedded store); otherwise it is a server.
  bool own_profiles = false;  ///< Each gateway computes fingerprints under a profile of its own.
  int trouble = 0;            ///< Chance of upstream trouble in percent.
  int slowness = 0;           ///< Chance of a slow handler or upstream in percent.
  std::vector<OperationConfig> scopes;
  std::vector<Intent> intents;
  std::vector<Fault> faults;

  std::string text() const;
};

Plan plan_of(std::uint64_t seed);

/// When the last intent and fault of any plan begins.
inline constexpr Duration plan_length = std::chrono::seconds(60);

}  // namespace einmal::simulation
