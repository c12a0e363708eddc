#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "cli.hpp"
#include "einmal/engine/observer.hpp"

/// `einmal` with an observer that kills or stops this process at a named point:
///   EINMAL_KILL_AT=claim_durable      SIGKILL when the point is reached for the first time
///   EINMAL_STOP_AT=first_byte_sent:3  SIGSTOP at the third time
/// `einmal_killable --points` lists the points.

namespace {

using namespace einmal;

struct Trap {
  std::string point;
  unsigned times = 0;
  int signal = 0;
};

std::optional<Trap> trap_from(const char* variable, int signal) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return std::nullopt;
  const std::string_view spec(text);
  const auto colon = spec.find(':');
  Trap trap{std::string(spec.substr(0, colon)), 1, signal};
  if (colon != std::string_view::npos)
    std::from_chars(spec.data() + colon + 1, spec.data() + spec.size(), trap.times);
  for (const auto point : all_points) {
    if (name(point) == trap.point) return trap;
  }
  std::fprintf(stderr, "%s: no point named %s\n", variable, trap.point.c_str());
  std::exit(2);
}

class TrapObserver final : public Observer {
 public:
  TrapObserver()
      : kill_(trap_from("EINMAL_KILL_AT", SIGKILL)), stop_(trap_from("EINMAL_STOP_AT", SIGSTOP)) {}

  void reached(Point point, const Scope&, Generation) override {
    spring(kill_, point);
    spring(stop_, point);
  }

 private:
  static void spring(std::optional<Trap>& trap, Point point) {
    if (!trap || name(point) != trap->point || --trap->times != 0) return;
    const int signal = trap->signal;
    trap.reset();
    ::kill(::getpid(), signal);
  }

  std::optional<Trap> kill_, stop_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--points") {
    for (const auto point : all_points) std::printf("%s\n", std::string(name(point)).c_str());
    return 0;
  }
  TrapObserver observer;
  return programs::run(argc, argv, observer);
}
