#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/error.hpp"
#include "einmal/base/random.hpp"
#include "einmal/probe/bench.hpp"
#include "einmal/probe/options.hpp"

/// The probe: asks every question and collects the verdicts. Blocking, one thread, no output.

namespace einmal::probe {

struct Finding {
  std::string_view name, what, demanded_by;  ///< Of the scenario; live as long as the program.
  Judgement judgement;
  Milliseconds took{0};
};

struct Report {
  std::string target;   ///< "POST http://HOST:PORT/orders"
  std::string control;  ///< What an ordinary request does.
  std::vector<Finding> findings;
  std::size_t requests = 0;

  std::size_t count(Verdict verdict) const;
};

/// Told of each finding as it is made.
using Progress = std::function<void(const Finding&)>;

/// Runs the scenarios that `options` choose, in their order. A target that is not loopback is
/// refused without `yes_this_host`, before anything is sent. Errors: invalid (an option, the host,
/// a scenario's name), unavailable (the target does not answer, or refuses the request itself:
/// then nothing can be judged).
Result<Report> run(const Options& options, Random& random, const Progress& progress = {});

}  // namespace einmal::probe
