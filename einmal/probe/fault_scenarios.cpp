#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "einmal/probe/scenario.hpp"

namespace einmal::probe {

namespace {

using SteadyClock = std::chrono::steady_clock;

/// Starts `command` by /bin/sh in a session of its own, so that a server it starts outlives the
/// probe; -1 when that failed.
pid_t start_shell(const std::string& command) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", 0, 0);
  // Its output is not the report.
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  std::string shell = "/bin/sh", option = "-c", text = command;
  std::array<char*, 4> arguments{shell.data(), option.data(), text.data(), nullptr};
  pid_t child = -1;
  if (::posix_spawn(&child, "/bin/sh", &files, &attributes, arguments.data(), ::environ) != 0)
    child = -1;
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return child;
}

/// Runs `command` to its end. False: it did not start, failed, or ran longer than 30 s.
bool run_shell(const Bench& bench, const std::string& command) {
  const auto child = start_shell(command);
  const auto end = SteadyClock::now() + std::chrono::seconds(30);
  while (child > 0 && SteadyClock::now() < end) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bench.pause(Milliseconds(2));
  }
  if (child > 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  return false;
}

/// The moments at which the target is crashed while a request is under way.
struct Moment {
  std::string_view name;
  enum class When : std::uint8_t { sent, half_way, running, effect_seen, answer_begins } when;
};
constexpr std::array<Moment, 4> moments{{{"as soon as it is sent", Moment::When::sent},
                                         {"half way", Moment::When::half_way},
                                         {"after its effect", Moment::When::effect_seen},
                                         {"as the answer comes", Moment::When::answer_begins}}};

void wait_for(Bench& bench, Watch& watch, Exchange& exchange, Moment::When when) {
  switch (when) {
    case Moment::When::sent:
      return;
    case Moment::When::half_way:
      exchange.answer_begins(std::max(bench.control.latency / 2, Milliseconds(1)));
      return;
    case Moment::When::running:
      exchange.answer_begins(Milliseconds(50));
      return;
    case Moment::When::effect_seen:
      watch.sees_one(bench.options().timeout);
      return;
    case Moment::When::answer_begins:
      exchange.answer_begins(bench.options().timeout);
      return;
  }
}

/// What came of a crash.
struct Aftermath {
  std::string unusable;  ///< Not empty: the commands did not do their part.
  Answer last;           ///< Of the repeats, until decided or out of patience.
  std::optional<long long> effects;
  std::string says;
};

Aftermath crash_at(Bench& bench, const Moment& moment) {
  Aftermath after;
  const auto request = moment.when == Moment::When::answer_begins
                           ? bench.keyed(bench.fresh_key())
                           : bench.slowed(bench.keyed(bench.fresh_key()));
  Watch watch(bench);
  auto exchange = bench.open();
  exchange.send(to_bytes(request));
  wait_for(bench, watch, exchange, moment.when);
  if (!run_shell(bench, *bench.options().crash_command)) {
    after.unusable = "--crash-command failed";
    return after;
  }
  exchange.close();
  if (start_shell(*bench.options().start_command) < 0 ||
      !bench.wait_until_up(std::chrono::seconds(30))) {
    after.unusable = "--start-command: nothing listens 30 s later";
    return after;
  }
  after.last = bench.settle(request).back();
  after.effects = watch.effects(after.last.is_success() ? 1 : 0);
  if (!after.effects) after.unusable = "effects cannot be counted after the crash";
  after.says = "crashed " + std::string(moment.name) + ": then " + in_words(after.last) + ", " +
               in_words(after.effects);
  return after;
}

/// Nothing: a crash can be judged.
std::optional<Judgement> cannot_crash(const Bench& bench) {
  if (!bench.options().crash_command) return not_judged("no --crash-command and --start-command");
  if (!bench.control.counts) return not_judged(bench.control.counts_why_not);
  return std::nullopt;
}

std::string seconds(Milliseconds time) {
  return std::to_string(time.count() / 1000) + "." + std::to_string(time.count() % 1000 / 100) +
         " s";
}

}  // namespace

Judgement outcome_unknown(Bench& bench) {
  if (!bench.options().fault_header) return not_judged("no --fault-header");
  if (!bench.control.counts) return not_judged(bench.control.counts_why_not);
  const auto request = bench.keyed(bench.fresh_key());
  Watch watch(bench);
  const auto first = bench.send(bench.with_header(request, *bench.options().fault_header));
  const auto second = bench.send(request);
  const auto third = bench.send(request);
  const auto effects = watch.effects(1);
  const auto says = "with the fault " + in_words(first) + ", repeats without it " +
                    in_words(second) + ", " + in_words(third) + "; " + in_words(effects);
  if (!effects) return not_judged(says);
  if (*effects > 1) return failed(says + "; an unknown outcome was run again");
  if (*effects < 1)
    return not_judged(says + "; the fault hinders the effect, so nothing was unknown");
  if (first.is_success()) return not_judged(says + "; the fault did no harm");
  return passed(says);
}

Judgement retention_over(Bench& bench) {
  if (!bench.options().retention) return not_judged("no --retention");
  const auto retention = *bench.options().retention;
  const auto request = bench.keyed(bench.fresh_key());
  Watch watch(bench);
  const auto first = bench.send(request);
  const auto answered = SteadyClock::now();
  if (!first.is_success()) return not_judged("the first is answered " + in_words(first));
  bench.pause(retention / 2);
  const auto within = bench.send(request);
  const auto until_then = watch.effects(1);
  auto says =
      "after " + seconds(retention / 2) + " " + in_words(within) + ", " + in_words(until_then);
  if (!within.is_success() || within.body != first.body || (until_then && *until_then != 1))
    return failed(says + "; the result is not kept for the retention");
  const auto after = retention + std::max(retention / 4, Milliseconds(1000));
  bench.pause(std::chrono::duration_cast<Milliseconds>(answered + after - SteadyClock::now()));
  const auto returned =
      bench.send_at_once(request, std::min<std::size_t>(8, bench.options().concurrency));
  const auto in_all = watch.effects(1);
  says += "; after " + seconds(after) + ", " + std::to_string(returned.size()) +
          " at once: " + tally(returned) + ", " + in_words(in_all) + " in all";
  for (const auto& answer : returned) {
    if (!answer.came() || answer.status == 500) return failed(says);
  }
  if (!in_all) return not_judged(says + " (" + bench.control.counts_why_not + ")");
  if (*in_all > 2) return failed(says + "; a key that returns was executed more than once");
  return passed(says + (*in_all == 2 ? ", one new effect" : ", no new effect"));
}

Judgement crash(Bench& bench) {
  if (auto why = cannot_crash(bench)) return *why;
  std::string evidence;
  for (const auto& moment : moments) {
    const auto after = crash_at(bench, moment);
    if (!after.unusable.empty()) return not_judged(after.unusable);
    if (*after.effects > 1) return failed(after.says + "; executed more than once");
    if (after.last.is_success() && *after.effects < 1)
      return failed(after.says + "; success without an effect");
    if (!after.last.came()) return failed(after.says + "; the key gets no answer any more");
    evidence += (evidence.empty() ? "" : " / ") + after.says;
  }
  return passed(evidence);
}

Judgement crash_decided(Bench& bench) {
  if (auto why = cannot_crash(bench)) return *why;
  const auto after = crash_at(bench, {"while it runs", Moment::When::running});
  if (!after.unusable.empty()) return not_judged(after.unusable);
  if (!after.last.came()) return failed(after.says + "; the key gets no answer any more");
  if (says_later(after.last))
    return failed(after.says + "; still \"later\" after " + seconds(bench.options().patience) +
                  ", though nobody works on it");
  return passed(after.says);
}

Judgement stale_owner(Bench&) {
  return not_judged("a black box cannot stop one of several owners and wake it later");
}

Judgement dependency_outage(Bench&) {
  return not_judged("a black box cannot take away what the target depends on");
}

}  // namespace einmal::probe
