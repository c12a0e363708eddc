#pragma once

#include <optional>
#include <string>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/client/client.hpp"
#include "einmal/engine/observer.hpp"
#include "einmal/gateway/config.hpp"
#include "einmal/probe/options.hpp"

/// The subcommands of `einmal`. Each takes what its options said and returns the exit code:
/// 0 done, 1 the command failed, 2 usage or configuration error. Each prints for a person;
/// errors go to standard error and name the option or file:line.

namespace einmal::programs {

struct ShopOptions {
  HostPort listen{"127.0.0.1", 0};
  std::string ledger;  ///< A file, sqlite:PATH or postgresql://...
  bool idempotent = false;
  bool key_required = true;                     ///< With idempotent: of a POST.
  Duration retention = std::chrono::hours(24);  ///< With idempotent.
  bool fencing = false;
};
/// Serves the demo shop until SIGTERM or SIGINT.
int shop(const ShopOptions& options);

struct DemoOptions {
  bool plain = false;  ///< No colours, whatever the terminal.
};
/// Starts a shop and a gateway as children and walks through what is promised. 1: a promise broke.
int demo(const DemoOptions& options);

struct GatewayOptions {
  std::string config;  ///< A file; or, where that is empty:
  std::optional<std::string> listen, upstream, store, caller;
  bool check = false, explain = false;
};
/// Serves until SIGTERM or SIGINT has drained it; the second one ends it at once. SIGHUP reads the
/// configuration file again. With `check` only says whether it would start, with `explain` what is
/// in effect.
int gateway(const GatewayOptions& options, Observer& observer);

/// One record, by scope or by operation id.
struct RecordName {
  std::string name_space = "gateway";
  std::string caller, operation, key;
  std::string id;
};
struct RecordsCommon {
  std::string store;
  bool json = false;
  bool reveal = false;  ///< Show keys and callers as they are, not as digests.
};
struct ListOptions {
  RecordsCommon common;
  std::optional<std::string> name_space, caller, operation;
  std::vector<std::string> states;
  std::optional<Duration> min_age;
  std::size_t limit = 100;
};
int records_list(const ListOptions& options);
/// The words that `states` understands, with commas between them.
std::string record_states();

struct ShowOptions {
  RecordsCommon common;
  RecordName record;
};
int records_show(const ShowOptions& options);

struct ChangeOptions {
  RecordsCommon common;
  RecordName record;
  std::string evidence;
  std::optional<std::uint64_t> generation;  ///< Changed only if it is still this one.
  bool dry_run = false;
  bool yes = false;
};
struct ResolveOptions {
  ChangeOptions change;
  bool completed = false, failed = false, free = false, force = false;
  int status = 0;
  std::string body_file;
  bool no_body = false;
  std::vector<std::string> headers;
  bool quiet = false;  ///< Say nothing when it went well.
};
int records_resolve(const ResolveOptions& options);
int records_forget(const ChangeOptions& options);
int records_doubt(const ChangeOptions& options);
int records_stats(const RecordsCommon& options);

struct SweepOptions {
  std::string store;
  bool dry_run = false;
};
/// Turns overdue records uncertain and removes what is past its retention, until nothing is left.
int sweep(const SweepOptions& options);

struct MigrateOptions {
  std::string store;
  bool after_restore = false;
  bool yes = false;
};
/// Brings the store's schema up to date; after a restore moves the generations on.
int migrate(const MigrateOptions& options);

struct ProbeOptions {
  probe::Options run;
  bool list = false;    ///< Only say what the scenarios are.
  bool json = false;    ///< JSON instead of a table.
  bool strict = false;  ///< What could not be judged counts as failed.
  std::string junit;    ///< File; empty: none.
};
/// Tests an API from outside. 1: a scenario failed, or the target does not serve the request at
/// all.
int probe(const ProbeOptions& options);

struct RequestOptions {
  client::Request request;
  client::ClientOptions client;
  client::CurlOptions curl;
  std::string intent;   ///< Empty: one of its own for this call.
  std::string journal;  ///< Empty: the user's, see default_journal.
  std::string output;   ///< Where the answer's body goes; empty: standard output.
  std::string forget;   ///< Intent, or #NUMBER of a damaged record.
  bool pending = false, resume = false, json_output = false, silent = false;
};
/// Sends one request under an intent until its outcome is known, or looks after what is open.
/// Returns 0 succeeded or replayed, 3 refused for good, 4 outcome unknown, key kept, 5 not
/// attempted; 1 the journal cannot be used, 2 usage error.
int request(RequestOptions options);

struct DoctorOptions {
  std::string store, config;
};
/// Looks at a configuration or store as an operator would, and says what needs a hand.
int doctor(const DoctorOptions& options);

}  // namespace einmal::programs
