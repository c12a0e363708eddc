#include "einmal/probe/run.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "einmal/probe/scenario.hpp"

namespace einmal::probe {

using SteadyClock = std::chrono::steady_clock;

namespace {

Milliseconds since(SteadyClock::time_point start) {
  return std::chrono::duration_cast<Milliseconds>(SteadyClock::now() - start);
}

Result<void> check(const Options& options) {
  const auto invalid = [](std::string message) {
    return failure(ErrorCode::invalid, std::move(message));
  };
  if (options.concurrency < 2 || options.concurrency > 64)
    return invalid("--concurrency: from 2 to 64");
  if (options.crash_command.has_value() != options.start_command.has_value())
    return invalid("--crash-command and --start-command belong together");
  if (!http::is_token(options.key_header)) return invalid("--key-header: not a header name");
  if (options.headers.has(options.key_header))
    return invalid("--header: the probe makes the key itself");
  for (const auto* names : {&options.only, &options.skip}) {
    for (const auto& name : *names) {
      const auto all = all_scenarios();
      if (std::none_of(all.begin(), all.end(), [&](const auto& s) { return s.name == name; }))
        return invalid("no scenario is called " + name + "; --list names them");
    }
  }
  return {};
}

bool is_chosen(const Options& options, std::string_view name) {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return (options.only.empty() || has(options.only)) && !has(options.skip);
}

/// Learns what the target does when nothing is wrong.
Result<void> learn(Bench& bench) {
  auto& control = bench.control;
  const auto before = bench.read_effects(&control.counts_why_not);
  bench.pause(bench.options().settle);
  const auto still = before ? bench.read_effects() : std::nullopt;
  std::array<Answer, 2> answers;
  for (auto& answer : answers) {
    const auto start = SteadyClock::now();
    answer = bench.send(bench.keyed(bench.fresh_key()));
    control.latency = since(start);
    if (!answer.came())
      return failure(ErrorCode::unavailable, "the target does not answer: " + answer.problem);
    if (!answer.is_success())
      return failure(ErrorCode::unavailable,
                     "an ordinary request with a fresh key is answered " + in_words(answer) +
                         ", not 2xx: nothing can be judged; look at --request, --body, --header");
  }
  control.answers_tell_apart = answers[0].body != answers[1].body;
  if (!before) return {};
  if (before != still) {
    control.counts_why_not = "the effect counter moves by itself; the probe needs it alone";
    return {};
  }
  control.counts = true;
  Watch watch(bench);  // From here on: two more, each counted once.
  for (int i = 0; i < 2; ++i) bench.send(bench.keyed(bench.fresh_key()));
  const auto effects = watch.effects(2);
  control.counts = effects == 2;
  if (!control.counts)
    control.counts_why_not =
        "two requests with fresh keys: " + in_words(effects) + " at --effects-pointer, not two";
  return {};
}

std::string describe(const Control& control) {
  return "an ordinary request takes " + std::to_string(control.latency.count()) + " ms; " +
         (control.counts ? "each counts as one effect" : control.counts_why_not) + "; " +
         (control.answers_tell_apart ? "answers tell executions apart"
                                     : "all executions are answered alike");
}

}  // namespace

std::size_t Report::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& finding) { return finding.judgement.verdict == verdict; }));
}

Result<Report> run(const Options& options, Random& random, const Progress& progress) {
  if (auto checked = check(options); !checked) return pass_on(checked);
  const auto endpoint = Endpoint::resolve(options.target.host, options.target.port);
  if (!endpoint) return pass_on(endpoint);
  if (!endpoint->is_loopback() && !options.yes_this_host)
    return failure(ErrorCode::invalid,
                   "--target: " + options.target.host +
                       " is another machine; the probe makes real effects there: say "
                       "--yes-this-host if it is yours to test");
  Route route{*endpoint, options.target.host, std::nullopt};
  if (options.target.tls) route.tls = options.tls;
  // Before anything else: a certificate that is not trusted is no verdict on anything.
  const Exchange first(route, options.timeout);
  if (!first.is_open())
    return failure(ErrorCode::unavailable, "the target does not answer: " + first.problem());
  Bench bench(options, std::move(route), random);
  if (auto learned = learn(bench); !learned) return pass_on(learned);
  Report report;
  report.target = options.request.method + " " + options.target.origin() + options.target.base +
                  options.request.path;
  report.control = describe(bench.control);
  for (const auto& scenario : all_scenarios()) {
    if (!is_chosen(options, scenario.name)) continue;
    const auto start = SteadyClock::now();
    auto judgement =
        bench.is_exhausted() ? not_judged("--max-requests is used up") : scenario.judge(bench);
    report.findings.push_back(
        {scenario.name, scenario.what, scenario.demanded_by, std::move(judgement), since(start)});
    if (progress) progress(report.findings.back());
  }
  report.requests = bench.requests();
  return report;
}

}  // namespace einmal::probe
