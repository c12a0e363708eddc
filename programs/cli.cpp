#include "cli.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "command_words.hpp"
#include "commands.hpp"
#include "completion.hpp"
#include "einmal/gateway/config_file.hpp"
#include "manual.hpp"
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
  ChangeOptions forget, doubt;
  RecordsCommon stats;
  SweepOptions sweep;
  MigrateOptions migrate;
  DoctorOptions doctor;
  ProbeOptions probe;
  RequestOptions request;
  std::string shell;
  int exit_code = 0;
};

void add_gateway(CLI::App& app, Options& all, Observer& observer) {
  auto& options = all.gateway;
  auto* command =
      app.add_subcommand("gateway", "Run the idempotent reverse proxy before an HTTP API");
  auto* config = command->add_option("--config", options.config, "Configuration file (TOML)");
  config->type_name("FILE");
  for (auto* flag :
       {command
            ->add_option("--listen", options.listen,
                         "Where clients connect, default 127.0.0.1:8080; port 0 picks a free one")
            ->type_name("HOST:PORT"),
        command->add_option("--upstream", options.upstream, "The API")->type_name("URL"),
        command->add_option("--store", options.store, "Default sqlite:einmal.db")
            ->type_name("STORE"),
        command
            ->add_option("--caller", options.caller, "Who is asking: header:NAME, fixed:NAME, ...")
            ->type_name("SPEC")})
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
             "Default 127.0.0.1:0; port 0 picks a free one")
      ->type_name("HOST:PORT");
  command
      ->add_option("--ledger", options.ledger,
                   "The shop's books: a file, sqlite:PATH or postgresql://...")
      ->required()
      ->type_name("FILE|STORE");
  auto* idempotent = command->add_flag(
      "--idempotent", options.idempotent,
      "Do each keyed request once: claim, booking and answer in one transaction on the books");
  const std::map<std::string, bool> words{{"required", true}, {"optional", false}};
  command
      ->add_option("--key", options.key_required, "Whether a POST needs a key: required, optional")
      ->needs(idempotent)
      ->transform(CLI::CheckedTransformer(words))
      ->type_name("WORD");
  add_parsed(*command, "--retention", options.retention, parse_duration,
             "How long an answer is replayed, default 24h")
      ->needs(idempotent)
      ->type_name("DURATION");
  command->add_flag(
      "--fencing", options.fencing,
      "Refuse what carries an older Einmal-Fencing-Token than its operation has seen");
  command->callback([&] { all.exit_code = shop(all.shop); });
}

CLI::Option* add_store(CLI::App& command, std::string& into) {
  return command.add_option("--store", into, "The store: sqlite:PATH or postgresql://...")
      ->type_name("STORE");
}

void add_common(CLI::App& command, RecordsCommon& common) {
  add_store(command, common.store)->required();
  command.add_flag("--json", common.json, "JSON instead of text");
  command.add_flag("--reveal", common.reveal, "Show keys, callers and bodies, not digests");
}

void add_record_name(CLI::App& command, RecordName& record) {
  command.add_option("--namespace", record.name_space, "Default gateway")->type_name("NAME");
  command.add_option("--caller", record.caller, "Whose record")->type_name("CALLER");
  command.add_option("--operation", record.operation, "Name of the operation")->type_name("NAME");
  command.add_option("--key", record.key, "Idempotency key")->type_name("KEY");
  command.add_option("--id", record.id, "Operation id, instead of the four above")
      ->type_name("UUID");
}

void add_change(CLI::App& command, ChangeOptions& change) {
  add_common(command, change.common);
  add_record_name(command, change.record);
  command.add_option("--generation", change.generation,
                     "Only if the record still has this generation, as `show` said");
  command.add_option("--evidence", change.evidence, "On what grounds; kept in the audit")
      ->required();
  command.add_flag("--dry-run", change.dry_run, "Change nothing, only say what would happen");
  command.add_flag("--yes", change.yes, "Do not ask");
}

void add_list(CLI::App& records, Options& all) {
  auto& options = all.list;
  auto* command = records.add_subcommand("list", "List records");
  add_common(*command, options.common);
  command->add_option("--namespace", options.name_space, "Only this namespace")->type_name("NAME");
  command->add_option("--caller", options.caller, "Only this caller")->type_name("CALLER");
  command->add_option("--operation", options.operation, "Only this operation")->type_name("NAME");
  command->add_option("--state", options.states, "Only these; may be repeated")
      ->type_name("{" + record_states() + "}");
  add_parsed(*command, "--min-age", options.min_age, parse_duration, "Only older ones, such as 10m")
      ->type_name("DURATION");
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
  command->add_flag("--force", options.force,
                    "Also while it is processing: its owner may still be at work");
  command->add_option("--status", options.status, "HTTP status of the result")
      ->check(CLI::Range(200, 599));
  command->add_option("--body-file", options.body_file, "Body of the result")->type_name("FILE");
  command->add_flag("--no-body", options.no_body, "The body is not known");
  command->add_option("--header", options.headers, "'Name: value' of the result; may be repeated")
      ->type_name("LINE");
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
  forget->callback([&] { all.exit_code = records_forget(all.forget); });
  auto* doubt = records->add_subcommand(
      "doubt", "Make a record uncertain that is processing without a lease: its owner is gone");
  add_change(*doubt, all.doubt);
  doubt->callback([&] { all.exit_code = records_doubt(all.doubt); });
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
  checking->add_option("--config", all.doctor.config, "Configuration file (TOML)")
      ->type_name("FILE");
  checking->callback([&] { all.exit_code = doctor(all.doctor); });
}

void add_words(CLI::App& app, Options& all) {
  auto* completing = app.add_subcommand(
      "completion", "Print what teaches a shell to complete: source <(einmal completion bash)");
  completing->add_option("shell", all.shell, "Which shell")
      ->required()
      ->type_name("{bash,zsh}")
      ->check([](const std::string& shell) {
        return completion_script(shell).empty() ? "neither bash nor zsh" : std::string();
      });
  completing->callback([&] { fmt::print("{}", completion_script(all.shell)); });
  auto* manual = app.add_subcommand("manual", "Print the manual page: einmal manual | man -l -");
  manual->callback([&app] { fmt::print("{}", manual_page(words_of(app), EINMAL_VERSION)); });
}

void add_all(CLI::App& app, Options& all, Observer& observer) {
  app.require_subcommand(1);
  app.set_version_flag("--version", "einmal " EINMAL_VERSION);
  add_gateway(app, all, observer);
  add_demo(app, all);
  add_shop(app, all);
  add_records(app, all);
  add_maintenance(app, all);
  add_probe(app, all.probe, all.exit_code);
  add_request(app, all.request, all.exit_code);
  add_words(app, all);
}

/// Where a standard stream is closed, the next socket or file would take its number, and what is
/// printed would go into that.
void hold_standard_streams() {
  for (int stream = 0; stream <= 2; ++stream) {
    if (::fcntl(stream, F_GETFD) == -1) (void)::open("/dev/null", O_RDWR);
  }
}

}  // namespace

int run(int argc, char** argv, Observer& observer) {
  hold_standard_streams();
  CLI::App app("Idempotency keys as a durable state machine: at most one execution for each key.",
               "einmal");
  Options all;
  add_all(app, all, observer);
  // What the scripts of completion_script ask; its words are whatever somebody has typed so far.
  if (argc > 1 && std::string_view(argv[1]) == "__complete") {
    fmt::print("{}", as_lines(complete(words_of(app), {argv + 2, argv + argc})));
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return all.exit_code;
}

}  // namespace einmal::programs
