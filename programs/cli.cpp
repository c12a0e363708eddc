#include "cli.hpp"

#include <CLI/CLI.hpp>
#include <string>

#include "commands.hpp"
#include "einmal/gateway/config_file.hpp"
#include "probe_options.hpp"
#include "request_options.hpp"

namespace einmal::programs {

namespace {

/// An option whose text is read by one of the configuration's own readers.
template <class T, class Parse>
CLI::Option* add_parsed(CLI::App& command, const std::string& flag, T& into, Parse parse,
                        const std::string& help) {
  return command.add_option_function<std::string>(
      flag,
      [&into, parse, flag](const std::string& text) {
        auto value = parse(text);
        if (!value) throw CLI::ValidationError(flag, value.error().message);
        into = std::move(*value);
      },
      help);
}

/// The options of every subcommand, alive while one of them runs.
struct Options {
  ShopOptions shop;
  DemoOptions demo;
  GatewayOptions gateway;
  ListOptions list;
  ShowOptions show;
  ResolveOptions resolve;
  ChangeOptions forget;
  RecordsCommon stats;
  SweepOptions sweep;
  MigrateOptions migrate;
  DoctorOptions doctor;
  ProbeOptions probe;
  RequestOptions request;
  int exit_code = 0;
};

void add_gateway(CLI::App& app, Options& all, Observer& observer) {
  auto& options = all.gateway;
  auto* command =
      app.add_subcommand("gateway", "Run the idempotent reverse proxy before an HTTP API");
  auto* config = command->add_option("--config", options.config, "Configuration file (TOML)");
  for (auto* flag :
       {command->add_option("--listen", options.listen,
                            "HOST:PORT, default 127.0.0.1:8080; port 0 picks a free one"),
        command->add_option("--upstream", options.upstream, "URL of the API"),
        command->add_option("--store", options.store, "Store, default sqlite:einmal.db"),
        command->add_option("--caller", options.caller,
                            "Who is asking: header:NAME, fixed:NAME, ...")})
    flag->excludes(config);
  command->add_flag("--check", options.check, "Only say whether it would start");
  command->add_flag("--explain", options.explain,
                    "Only say every value in effect and where it came from");
  command->callback([&] { all.exit_code = gateway(all.gateway, observer); });
}

void add_demo(CLI::App& app, Options& all) {
  auto* command = app.add_subcommand(
      "demo", "Start a shop and a gateway before it, and walk through what is promised");
  command->add_flag("--plain", all.demo.plain, "No colours");
  command->callback([&] { all.exit_code = demo(all.demo); });
}

void add_shop(CLI::App& app, Options& all) {
  auto& options = all.shop;
  auto* command = app.add_subcommand("shop", "Serve the demo shop: an API that needs einmal");
  add_parsed(*command, "--listen", options.listen, parse_host_port,
             "HOST:PORT, default 127.0.0.1:0; port 0 picks a free one");
  command->add_option("--ledger", options.ledger, "File of the shop's books (SQLite)")->required();
  command->add_flag("--idempotent", options.idempotent,
                    "Deduplicate by a unique key of the shop's own");
  command->callback([&] { all.exit_code = shop(all.shop); });
}

CLI::Option* add_store(CLI::App& command, std::string& into) {
  return command.add_option("--store", into, "URL of the store: sqlite:PATH or postgresql://...");
}

void add_common(CLI::App& command, RecordsCommon& common) {
  add_store(command, common.store)->required();
  command.add_flag("--json", common.json, "JSON instead of text");
  command.add_flag("--reveal", common.reveal, "Show keys, callers and bodies, not digests");
}

void add_record_name(CLI::App& command, RecordName& record) {
  command.add_option("--namespace", record.name_space, "Default gateway");
  command.add_option("--caller", record.caller, "Whose record");
  command.add_option("--operation", record.operation, "Name of the operation");
  command.add_option("--key", record.key, "Idempotency key");
  command.add_option("--id", record.id, "Operation id, instead of the four above");
}

void add_change(CLI::App& command, ChangeOptions& change) {
  add_common(command, change.common);
  add_record_name(command, change.record);
  command.add_flag("--dry-run", change.dry_run, "Change nothing");
  command.add_flag("--yes", change.yes, "Do not ask");
}

void add_list(CLI::App& records, Options& all) {
  auto& options = all.list;
  auto* command = records.add_subcommand("list", "List records");
  add_common(*command, options.common);
  command->add_option("--namespace", options.name_space, "Only this namespace");
  command->add_option("--caller", options.caller, "Only this caller");
  command->add_option("--operation", options.operation, "Only this operation");
  command->add_option("--state", options.states,
                      "Only these: processing, completed, failed, uncertain, tombstone, absent");
  add_parsed(*command, "--min-age", options.min_age, parse_duration,
             "Only older ones, such as 10m");
  command->add_option("--limit", options.limit, "At most so many, default 100")
      ->check(CLI::Range(1, 1'000'000));
  command->callback([&] { all.exit_code = records_list(all.list); });
}

void add_resolve(CLI::App& records, Options& all) {
  auto& options = all.resolve;
  auto* command = records.add_subcommand("resolve", "Settle an uncertain record with evidence");
  add_change(*command, options.change);
  command->add_flag("--completed", options.completed, "It happened: replay this result");
  command->add_flag("--failed", options.failed, "It was refused for good: replay this result");
  command->add_flag("--free", options.free, "It can no longer have an effect: free the key");
  command->add_flag("--force", options.force, "Also while it is processing");
  command->add_option("--status", options.status, "HTTP status of the result")
      ->check(CLI::Range(200, 599));
  command->add_option("--body-file", options.body_file, "Body of the result");
  command->add_flag("--no-body", options.no_body, "The body is not known");
  command->add_option("--header", options.headers, "'Name: value' of the result; may be repeated");
  command->add_option("--evidence", options.change.evidence, "On what grounds; kept in the audit")
      ->required();
  command->callback([&] { all.exit_code = records_resolve(all.resolve); });
}

void add_records(CLI::App& app, Options& all) {
  auto* records = app.add_subcommand("records", "Look at records and settle uncertain ones");
  records->require_subcommand(1);
  add_list(*records, all);
  auto* show = records->add_subcommand("show", "One record and its history");
  add_common(*show, all.show.common);
  add_record_name(*show, all.show.record);
  show->callback([&] { all.exit_code = records_show(all.show); });
  add_resolve(*records, all);
  auto* forget = records->add_subcommand("forget", "Remove a settled record before its time");
  add_change(*forget, all.forget);
  forget->add_option("--evidence", all.forget.evidence, "On what grounds; kept in the audit")
      ->required();
  forget->callback([&] { all.exit_code = records_forget(all.forget); });
  auto* stats = records->add_subcommand("stats", "How many records, how large, how old");
  add_common(*stats, all.stats);
  stats->callback([&] { all.exit_code = records_stats(all.stats); });
}

void add_maintenance(CLI::App& app, Options& all) {
  auto* sweeping = app.add_subcommand("sweep", "Remove what is past its retention, now");
  add_store(*sweeping, all.sweep.store)->required();
  sweeping->add_flag("--dry-run", all.sweep.dry_run, "Change nothing");
  sweeping->callback([&] { all.exit_code = sweep(all.sweep); });
  auto* migrating = app.add_subcommand("migrate", "Bring a store's schema up to date");
  add_store(*migrating, all.migrate.store)->required();
  migrating->add_flag("--after-restore", all.migrate.after_restore,
                      "The store was restored from a backup: move the generations on");
  migrating->add_flag("--yes", all.migrate.yes, "Do not ask");
  migrating->callback([&] { all.exit_code = migrate(all.migrate); });
  auto* checking = app.add_subcommand("doctor", "Look at a configuration and a store");
  add_store(*checking, all.doctor.store);
  checking->add_option("--config", all.doctor.config, "Configuration file (TOML)");
  checking->callback([&] { all.exit_code = doctor(all.doctor); });
}

}  // namespace

int run(int argc, char** argv, Observer& observer) {
  CLI::App app("Idempotency keys as a durable state machine: at most one execution for each key.",
               "einmal");
  app.require_subcommand(1);
  app.set_version_flag("--version", "einmal " EINMAL_VERSION);
  Options all;
  add_gateway(app, all, observer);
  add_demo(app, all);
  add_shop(app, all);
  add_records(app, all);
  add_maintenance(app, all);
  add_probe(app, all.probe, all.exit_code);
  add_request(app, all.request, all.exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return all.exit_code;
}

}  // namespace einmal::programs
