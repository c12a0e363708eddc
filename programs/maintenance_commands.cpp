#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "commands.hpp"
#include "einmal/base/random.hpp"
#include "einmal/gateway/config_file.hpp"
#include "record_view.hpp"
#include "store_url.hpp"

namespace einmal::programs {

namespace {

int complain(std::string_view command, const Error& error) {
  fmt::print(stderr, "einmal {}: {}\n", command, error.message);
  return error.code == ErrorCode::invalid ? 2 : 1;
}

struct Swept {
  std::size_t overdue = 0, removed = 0, stripped = 0;
};

/// Runs batches until nothing is left to do.
template <class Batch>
Result<Swept> in_batches(Store& store, Batch batch) {
  Swept swept;
  while (true) {
    auto answered = ask(store, batch);
    if (!answered) return pass_on(answered);
    const auto& moved = std::get<answer::Moved>(*answered);
    swept.removed += moved.changed;
    swept.stripped += moved.stripped;
    if (!moved.more) return swept;
  }
}

/// Prints one line for each thing that was looked at, and remembers whether any needs a hand.
class Findings {
 public:
  void good(std::string_view what) { fmt::print("ok    {}\n", what); }
  void attention(std::string_view what) {
    fmt::print("LOOK  {}\n", what);
    good_ = false;
  }
  void broken(std::string_view what) {
    fmt::print("BAD   {}\n", what);
    good_ = false;
  }
  bool all_good() const { return good_; }

 private:
  bool good_ = true;
};

void examine(const std::vector<PostgresFinding>& server, Findings& findings) {
  for (const PostgresFinding& each : server) {
    const auto line = fmt::format("{} = {}: {}", each.setting, each.value, each.meaning);
    switch (each.level) {
      case PostgresFinding::Level::good:
        findings.good(line);
        break;
      case PostgresFinding::Level::attention:
        findings.attention(line);
        break;
      case PostgresFinding::Level::broken:
        findings.broken(line);
        break;
    }
  }
}

void examine(const answer::Stats& stats, Findings& findings) {
  findings.good(fmt::format("{} completed, {} failed, {} tombstones", stats.completed.records,
                            stats.failed.records, stats.tombstone.records));
  if (stats.uncertain.records == 0) {
    findings.good("no uncertain records");
  } else {
    findings.attention(fmt::format(
        "{} uncertain records, the oldest for {}: einmal records list --state uncertain",
        stats.uncertain.records, in_words(stats.oldest_uncertain.value_or(Duration{}))));
  }
  constexpr Duration long_ago = std::chrono::minutes(10);
  if (stats.oldest_processing.value_or(Duration{}) < long_ago) {
    findings.good(fmt::format("{} in progress, none for long", stats.processing.records));
  } else {
    findings.attention(
        fmt::format("the oldest of {} in progress was claimed {} ago: einmal records "
                    "list --state processing",
                    stats.processing.records, in_words(*stats.oldest_processing)));
  }
  if (stats.sweep_lag.value_or(Duration{}) < long_ago) {
    findings.good(fmt::format("sweep backlog {}", stats.sweep_backlog));
  } else {
    findings.attention(
        fmt::format("{} expired records are not swept, the oldest is due for {}: does "
                    "a gateway run? einmal sweep removes them",
                    stats.sweep_backlog, in_words(*stats.sweep_lag)));
  }
  if (stats.expiry_paused) {
    findings.attention(
        "expiry is paused: the wall clock jumped ahead of the monotonic one; set the "
        "clock right");
  }
}

}  // namespace

int sweep(const SweepOptions& options) {
  const SystemClock clock;
  SystemRandom random;
  StoreSettings settings;
  settings.create = false;
  const auto store = open_store(options.store, settings, clock, random);
  if (!store) return complain("sweep", store.error());
  if (options.dry_run) {
    const auto answered = ask(**store, request::Stats{});
    if (!answered) return complain("sweep", answered.error());
    const auto& stats = std::get<answer::Stats>(*answered);
    fmt::print("{} records are due; nothing was changed (--dry-run)\n", stats.sweep_backlog);
    return 0;
  }
  const auto overdue = in_batches(**store, request::Overdue{});
  if (!overdue) return complain("sweep", overdue.error());
  const auto swept = in_batches(**store, request::Sweep{});
  if (!swept) return complain("sweep", swept.error());
  fmt::print("{} became uncertain, {} removed, {} reduced to tombstones\n", overdue->removed,
             swept->removed, swept->stripped);
  return 0;
}

int migrate(const MigrateOptions& options) {
  const SystemClock clock;
  SystemRandom random;
  if (const auto migrated = migrate_store(options.store); !migrated)
    return complain("migrate", migrated.error());
  const auto store = open_store(options.store, {}, clock, random);
  if (!store) return complain("migrate", store.error());
  fmt::print("the schema is up to date\n");
  if (!options.after_restore) return 0;
  if (!options.yes) {
    if (::isatty(STDIN_FILENO) == 0) {
      fmt::print(stderr, "einmal migrate: generations were not moved; say --yes\n");
      return 1;
    }
    fmt::print(
        "Moves the generations on, so that nothing claimed before the restore can write. Keys "
        "whose records the restore lost are unprotected. Stop every gateway first. Go on? "
        "[y/N] ");
    std::fflush(stdout);
    std::string answer;
    std::getline(std::cin, answer);
    if (answer != "y" && answer != "yes") return 1;
  }
  const auto moved = ask(**store, request::AdvanceGenerations{Actor{"einmal migrate", ""}});
  if (!moved) return complain("migrate", moved.error());
  fmt::print("generations were moved on by 2^32\n");
  return 0;
}

int doctor(const DoctorOptions& options) {
  Findings findings;
  auto url = options.store;
  if (!options.config.empty()) {
    const auto config = read_config(options.config);
    if (!config) return complain("doctor", config.error());
    findings.good(fmt::format("{}: {} operations", options.config, config->operations.size()));
    if (url.empty()) url = config->store_url;
  }
  if (url.empty()) {
    fmt::print(stderr, "einmal doctor: --store URL or --config FILE is needed\n");
    return 2;
  }
  const auto server = examine_server(url);
  if (!server) return complain("doctor", server.error());
  examine(*server, findings);
  const SystemClock clock;
  SystemRandom random;
  StoreSettings settings;
  settings.create = false;
  const auto store = open_store(url, settings, clock, random);
  if (!store) return complain("doctor", store.error());
  const auto& capabilities = (*store)->capabilities();
  findings.good(fmt::format("{}: opened, {}{}", shown_url(url), capabilities.name,
                            capabilities.durable ? ", durable" : ", NOT durable"));
  const auto answered = ask(**store, request::Stats{});
  if (!answered) return complain("doctor", answered.error());
  examine(std::get<answer::Stats>(*answered), findings);
  return findings.all_good() ? 0 : 1;
}

}  // namespace einmal::programs
