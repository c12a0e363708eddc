#include <fmt/core.h>

#include <cstdio>
#include <fstream>

#include "commands.hpp"
#include "einmal/base/random.hpp"
#include "einmal/probe/report.hpp"
#include "einmal/probe/run.hpp"

namespace einmal::programs {

int probe(const ProbeOptions& options) {
  if (options.list) {
    fmt::print("{}", probe::list_of_scenarios());
    return 0;
  }
  std::ofstream junit;
  if (!options.junit.empty()) {
    junit.open(options.junit);
    if (!junit) {
      fmt::print(stderr, "einmal probe: --junit: {} cannot be written\n", options.junit);
      return 2;
    }
  }
  SystemRandom random;
  const auto report = probe::run(options.run, random, [&](const probe::Finding& finding) {
    if (options.json) return;
    fmt::print("{}", probe::table_line(finding));
    std::fflush(stdout);
  });
  if (!report) {
    fmt::print(stderr, "einmal probe: {}\n", report.error().message);
    return report.error().code == ErrorCode::invalid ? 2 : 1;
  }
  if (options.json)
    fmt::print("{}", probe::as_json(*report));
  else
    fmt::print("\n{}: {}\n{}", report->target, report->control, probe::summary(*report));
  if (junit.is_open()) {
    junit << probe::as_junit(*report);
    if (!junit.flush()) {
      fmt::print(stderr, "einmal probe: --junit: {} cannot be written\n", options.junit);
      return 1;
    }
  }
  const auto open = options.strict ? report->count(probe::Verdict::not_judged) : 0;
  return report->count(probe::Verdict::failed) + open == 0 ? 0 : 1;
}

}  // namespace einmal::programs
