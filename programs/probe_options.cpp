#include "probe_options.hpp"

#include <iterator>

#include "einmal/base/read_file.hpp"
#include "einmal/gateway/config_file.hpp"

namespace einmal::programs {

namespace {

/// What `parse` makes of an option's text, or CLI11's error with the option's name.
template <class Parse>
auto parsed(const std::string& flag, Parse parse, const std::string& text) {
  auto value = parse(text);
  if (!value) throw CLI::ValidationError(flag, value.error().message);
  return std::move(*value);
}

template <class Into, class Parse>
CLI::Option* add(CLI::App& command, const std::string& flag, Into& into, Parse parse,
                 const std::string& help) {
  return command.add_option_function<std::string>(
      flag, [&into, parse, flag](const std::string& text) { into = parsed(flag, parse, text); },
      help);
}

/// Text, or with @ before it the file of that name.
Result<std::string> body_text(const std::string& text) {
  if (!text.starts_with('@')) return text;
  return read_file(text.substr(1));
}

Result<probe::Milliseconds> milliseconds(const std::string& text) {
  const auto duration = parse_duration(text);
  if (!duration) return pass_on(duration);
  return std::chrono::duration_cast<probe::Milliseconds>(*duration);
}

void add_request(CLI::App& command, ProbeOptions& options) {
  auto& run = options.run;
  add(command, "--target", run.target, probe::parse_target, "http[s]://HOST[:PORT] of the API")
      ->type_name("URL");
  command
      .add_option("--ca", run.tls.ca, "PEM file of whom to trust, for https; default: the system")
      ->type_name("FILE");
  command.add_flag("--insecure", run.tls.insecure, "Do not verify the certificate");
  add(command, "--request", run.request, probe::parse_operation,
      "What is sent, such as \"POST /orders\": it must succeed with any fresh key")
      ->type_name("REQUEST");
  add(command, "--body", run.body, body_text, "Its body: text, or @FILE")->type_name("TEXT");
  command
      .add_option_function<std::vector<std::string>>(
          "--header",
          [&run](const std::vector<std::string>& lines) {
            for (const auto& line : lines) {
              const auto header = parsed("--header", probe::parse_header, line);
              run.headers.add(header.first, header.second);
            }
          },
          "'Name: value' of every request; may be repeated")
      ->type_name("LINE");
  command.add_option("--key-header", run.key_header, "Header of the key, default Idempotency-Key")
      ->type_name("NAME");
  add(command, "--effects", run.effects, probe::parse_operation,
      "Request that tells how many effects there were, such as \"GET /effects\"")
      ->type_name("REQUEST");
  command
      .add_option("--effects-pointer", run.effects_pointer,
                  "JSON pointer to the number in its answer, default /count")
      ->type_name("POINTER");
}

void add_needs(CLI::App& command, probe::Options& run) {
  add(command, "--other-caller", run.other_caller, probe::parse_header,
      "Header that makes it another caller, in place of that of --header")
      ->type_name("LINE");
  add(command, "--other-request", run.other_request, probe::parse_operation,
      "Another operation under the same keys")
      ->type_name("REQUEST");
  add(command, "--other-body", run.other_body, body_text, "Its body; default: the same");
  add(command, "--failing-body", run.failing_body, body_text,
      "Body that a business rule refuses with 4xx");
  add(command, "--changed-body", run.changed_body, body_text,
      "Body of another good request; default: a member of --body changed");
  add(command, "--slow-header", run.slow_header, probe::parse_header,
      "Header that makes the work take a few hundred milliseconds")
      ->type_name("LINE");
  add(command, "--fault-header", run.fault_header, probe::parse_header,
      "Header that makes the outcome unknown: the effect happens, the answer is lost inside")
      ->type_name("LINE");
  add(command, "--mutate", run.mutate, probe::parse_operation,
      "Changes what was made: \"DELETE /orders/{/id}\", {/id} out of the first answer")
      ->type_name("REQUEST");
  add(command, "--mutate-body", run.mutate_body, body_text, "Its body");
  add(command, "--retention", run.retention, milliseconds, "The target's retention, if short: 3s")
      ->type_name("DURATION");
  command.add_option("--crash-command", run.crash_command, "Shell command that kills the target")
      ->type_name("COMMAND");
  command.add_option("--start-command", run.start_command, "Shell command that starts it again")
      ->type_name("COMMAND");
}

void add_bounds(CLI::App& command, probe::Options& run) {
  command.add_flag("--yes-this-host", run.yes_this_host,
                   "The target may be another machine than this one");
  command.add_option("--only", run.only, "Only this scenario; may be repeated")
      ->type_name("SCENARIO");
  command.add_option("--skip", run.skip, "Not this scenario; may be repeated")
      ->type_name("SCENARIO");
  command.add_option("--concurrency", run.concurrency,
                     "Copies sent at once, default 16, at most 64");
  command.add_option("--max-requests", run.max_requests, "Requests in all, default 1000")
      ->check(CLI::Range(10, 1'000'000));
  add(command, "--pace", run.pace, milliseconds, "Pause before a request, default 10ms")
      ->type_name("DURATION");
  add(command, "--timeout", run.timeout, milliseconds, "For one answer, default 10s")
      ->type_name("DURATION");
  add(command, "--patience", run.patience, milliseconds,
      "How long a key is repeated until it is decided, default 15s")
      ->type_name("DURATION");
  add(command, "--settle", run.settle, milliseconds,
      "How long the counter is watched for late effects, default 200ms")
      ->type_name("DURATION");
}

}  // namespace

void add_probe(CLI::App& app, ProbeOptions& options, int& exit_code) {
  auto* command = app.add_subcommand("probe", "Test the idempotency of an HTTP API from outside");
  add_request(*command, options);
  add_needs(*command, options.run);
  add_bounds(*command, options.run);
  command->add_flag("--list", options.list,
                    "Only say what the scenarios are and what demands them");
  command->add_flag("--json", options.json, "JSON instead of a table");
  command->add_option("--junit", options.junit, "Write the verdicts to this file as JUnit XML")
      ->type_name("FILE");
  command->add_flag("--strict", options.strict, "What cannot be judged fails as well");
  command->callback([command, &options, &exit_code] {
    if (!options.list) {
      for (const auto* needed : {"--target", "--request"}) {
        if (command->get_option(needed)->empty()) throw CLI::RequiredError(needed);
      }
    }
    exit_code = probe(options);
  });
}

}  // namespace einmal::programs
