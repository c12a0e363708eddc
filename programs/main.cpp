#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

#include "commands.hpp"

namespace {

using namespace einmal::programs;

/// "HOST:PORT"; the host may be an IPv6 address in brackets.
bool parse_listen(const std::string& text, ListenAddress& into) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  const auto port = std::string_view(text).substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), into.port);
  if (error != std::errc{} || end != port.data() + port.size()) return false;
  into.host = text.substr(0, colon);
  if (into.host.front() == '[' && into.host.back() == ']')
    into.host = into.host.substr(1, into.host.size() - 2);
  return !into.host.empty();
}

CLI::Option* add_listen(CLI::App& command, ListenAddress& into, const std::string& help) {
  return command.add_option_function<std::string>(
      "--listen",
      [&into](const std::string& text) {
        if (!parse_listen(text, into))
          throw CLI::ValidationError("--listen", "'" + text + "' is not HOST:PORT");
      },
      help);
}

void add_shop(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("shop", "Serve the demo shop: an API that needs einmal");
  static ShopOptions options;
  add_listen(*command, options.listen, "HOST:PORT, default 127.0.0.1:0; port 0 picks a free one");
  command->add_option("--ledger", options.ledger, "File of the shop's books (SQLite)")->required();
  command->add_flag("--idempotent", options.idempotent,
                    "Deduplicate by a unique key of the shop's own");
  command->callback([&exit_code] { exit_code = shop(options); });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Idempotency keys as a durable state machine: at most one execution for each key.",
               "einmal");
  app.require_subcommand(1);
  app.set_version_flag("--version", "einmal " EINMAL_VERSION);
  int exit_code = 0;
  add_shop(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}
