#pragma once

#include <string>

#include "einmal/probe/run.hpp"

/// A report for people and for programs.

namespace einmal::probe {

/// One line: name, verdict, evidence.
std::string table_line(const Finding& finding);
/// What comes after the lines.
std::string summary(const Report& report);
/// {"target","control","requests","passed","failed","not_judged","scenarios":[{"name","verdict",
/// "evidence","demanded_by","milliseconds"}]}; verdict: passed, failed, not_judged.
std::string as_json(const Report& report);
/// One test suite; not judged is "skipped".
std::string as_junit(const Report& report);
/// What each scenario does and what demands it.
std::string list_of_scenarios();

}  // namespace einmal::probe
