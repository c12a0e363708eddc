#include "request_options.hpp"

#include <array>
#include <iostream>
#include <iterator>

#include "einmal/base/read_file.hpp"
#include "einmal/gateway/config_file.hpp"

namespace einmal::programs {

namespace {

using Texts = std::vector<std::string>;

/// Text, or with @ before it the bytes of that file, `@-` for standard input.
std::string bytes_of(const std::string& flag, const std::string& text) {
  if (text.empty() || text.front() != '@') return text;
  if (text == "@-") return {std::istreambuf_iterator<char>(std::cin), {}};
  auto bytes = read_file(text.substr(1));
  if (!bytes) throw CLI::ValidationError(flag, bytes.error().message);
  return std::move(*bytes);
}

/// What names or proves the caller may be another in a later run, and must not lie in a file.
bool is_credential(std::string_view name) {
  constexpr std::array<std::string_view, 5> names = {"Authorization", "Proxy-Authorization",
                                                     "Cookie", "X-Api-Key", "Api-Key"};
  for (const auto credential : names) {
    if (http::iequals(name, credential)) return true;
  }
  return false;
}

void add_line(const std::string& flag, http::HeaderLines& into, const std::string& line) {
  const auto colon = line.find(':');
  const auto name = std::string_view(line).substr(0, colon);
  const auto value = colon == std::string::npos
                         ? std::string_view()
                         : http::trim(std::string_view(line).substr(colon + 1));
  if (colon == std::string::npos || !http::is_token(name) || !http::is_field_value(value))
    throw CLI::ValidationError(flag, "must be 'Name: value'");
  into.add(name, value);
}

void set_default(http::HeaderLines& headers, std::string_view name, std::string_view value) {
  if (!headers.has(name)) headers.add(name, value);
}

void add_duration(CLI::App& command, const std::string& flag, Duration& into,
                  const std::string& help) {
  command
      .add_option_function<std::string>(
          flag,
          [&into, flag](const std::string& text) {
            const auto value = parse_duration(text);
            if (!value) throw CLI::ValidationError(flag, value.error().message);
            into = *value;
          },
          help)
      ->type_name("DURATION");
}

void add_content(CLI::App& command, client::Request& request) {
  command.add_option("method", request.method, "POST, PUT, PATCH, DELETE ...");
  command.add_option("url", request.url, "http[s]://...");
  command
      .add_option_function<Texts>(
          "-H,--header",
          [&request](const Texts& lines) {
            http::HeaderLines parsed;
            for (const auto& line : lines) add_line("--header", parsed, line);
            for (const auto line : parsed) {
              auto& into = is_credential(line.name) ? request.credentials : request.headers;
              into.add(line.name, line.value);
            }
          },
          "'Name: value', stored with the intent (Authorization, Cookie and X-Api-Key never are)")
      ->type_name("LINE")
      ->allow_extra_args(false)
      ->trigger_on_parse();
  command
      .add_option_function<Texts>(
          "--credential",
          [&request](const Texts& lines) {
            for (const auto& line : lines) add_line("--credential", request.credentials, line);
          },
          "'Name: value', sent but never stored")
      ->type_name("LINE")
      ->allow_extra_args(false)
      ->trigger_on_parse();
  auto* data = command.add_option_function<std::string>(
      "-d,--data", [&request](const std::string& text) { request.body = bytes_of("--data", text); },
      "Body: text, @FILE, or @- for standard input; the bytes as they are");
  command
      .add_option_function<std::string>(
          "--json",
          [&request](const std::string& text) {
            request.body = bytes_of("--json", text);
            set_default(request.headers, "Content-Type", "application/json");
            set_default(request.headers, "Accept", "application/json");
          },
          "The same, with Content-Type and Accept application/json")
      ->excludes(data);
}

void add_key(CLI::App& command, RequestOptions& options) {
  command
      .add_option_function<std::string>(
          "--intent",
          [&options](const std::string& name) {
            // Most likely a variable that is not set: each call would be an intent of its own.
            if (name.empty()) throw CLI::ValidationError("--intent", "the name is empty");
            options.intent = name;
          },
          "What this is about, such as 'refund order 4711': the same name is the same "
          "key in every run. Without it each call is an intent of its own")
      ->type_name("NAME");
  command
      .add_option_function<std::string>(
          "--journal",
          [&options](const std::string& file) {
            if (file.empty()) throw CLI::ValidationError("--journal", "the name is empty");
            options.journal = file;
          },
          "File of keys, default $XDG_STATE_HOME/einmal/requests.journal")
      ->type_name("FILE");
  command.add_option("--key", options.request.key, "Your own key instead of a random one")
      ->type_name("KEY");
  command.add_option("--key-header", options.client.key_header, "Default Idempotency-Key")
      ->type_name("NAME");
  command.add_flag_callback(
      "--quoted-key", [&options] { options.client.key_style = client::KeyStyle::quoted; },
      "Send the key as \"KEY\", as the IETF draft has it, instead of bare");
  command.add_flag("--send-too-old", options.client.send_too_old,
                   "Send a key that the server may have forgotten: it may be done twice");
  add_duration(command, "--window", options.client.assumed_window,
               "How long a server that publishes nothing keeps keys, default 24h");
}

void add_patience(CLI::App& command, RequestOptions& options) {
  auto& patience = options.client.patience;
  add_duration(command, "--deadline", patience.deadline, "For all attempts, default 2m");
  add_duration(command, "--attempt-timeout", patience.attempt_timeout,
               "For one attempt, default 70s");
  command.add_option("--max-attempts", patience.max_attempts, "Default 6")
      ->check(CLI::Range(1, 1000));
  command.add_option("--cacert", options.curl.ca_file, "PEM file of whom to trust, for https")
      ->type_name("FILE");
  command.add_option("--proxy", options.curl.proxy, "URL, \"\" for none; default: environment")
      ->type_name("URL");
}

void add_output(CLI::App& command, RequestOptions& options) {
  command.add_option("-o,--output", options.output, "File for the answer's body")
      ->type_name("FILE");
  command.add_flag("--json-output", options.json_output, "One JSON object on standard output");
  command.add_flag("-s,--silent", options.silent, "No line about the verdict");
  auto* pending = command.add_flag("--pending", options.pending, "Only list what is open");
  auto* resume = command.add_flag("--resume", options.resume,
                                  "Finish what is open, or only --intent, from the journal");
  auto* forget = command
                     .add_option("--forget", options.forget,
                                 "Drop an intent from the journal (or #NUMBER, if damaged)")
                     ->type_name("NAME");
  pending->excludes(resume)->excludes(forget);
  resume->excludes(forget);
}

}  // namespace

void add_request(CLI::App& app, RequestOptions& options, int& exit_code) {
  auto* command = app.add_subcommand(
      "request", "Send a request until its outcome is known, under a key that outlives this run");
  command->footer(
      "Exit codes: 0 succeeded or replayed, 3 refused for good, 4 outcome unknown (the key is "
      "kept:\nrun it again), 5 not attempted, 1 the journal cannot be used, 2 usage error");
  add_content(*command, options.request);
  add_key(*command, options);
  add_patience(*command, options);
  add_output(*command, options);
  command->callback([&options, &exit_code] {
    auto& sent = options.request;
    if (!sent.body.empty() && !sent.headers.has("Content-Type"))
      sent.headers.add("Content-Type", "application/x-www-form-urlencoded");
    exit_code = request(options);
  });
}

}  // namespace einmal::programs
