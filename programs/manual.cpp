#include "manual.hpp"

namespace einmal::programs {

namespace {

/// Text as troff takes it literally, one sentence after the other.
std::string literal(std::string_view text) {
  std::string out;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    at_line_start = c == '\n';
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + literal(text) + "\\fR"; }
std::string value(std::string_view text) { return "\\fI" + literal(text) + "\\fR"; }

std::string tag(const OptionWords& option, bool positional) {
  std::string text;
  for (const auto& name : option.names)
    text += (text.empty() ? "" : ", ") + (positional ? value(name) : bold(name));
  if (!option.value.empty() && !positional) text += " " + value(option.value);
  if (option.repeated) text += " ...";
  return text;
}

std::string described(const OptionWords& option, bool positional) {
  std::string text = ".TP\n" + tag(option, positional) + "\n" + literal(option.help);
  if (!option.choices.empty()) {
    std::string all;
    for (const auto& choice : option.choices) all += (all.empty() ? "" : ", ") + choice;
    text += "\n(" + literal(all) + ")";
  }
  if (option.required) text += "\n(required)";
  return text + (text.back() == '.' ? "\n" : ".\n");
}

/// One command and, below it, its own.
std::string described(const CommandWords& command, const std::string& path) {
  const auto full = path + " " + command.name;
  std::string text;
  if (command.commands.empty()) {
    text += ".SS \"" + literal(full) + "\"\n" + literal(command.help) + ".\n";
    for (const auto& positional : command.positionals) text += described(positional, true);
    for (const auto& option : command.options) {
      if (option.names.back() != "--help") text += described(option, false);
    }
    if (!command.footer.empty()) text += ".PP\n" + literal(command.footer) + ".\n";
  }
  for (const auto& each : command.commands) text += described(each, full);
  return text;
}

constexpr std::string_view opening = R"man(.SH DESCRIPTION
For one authenticated caller, one operation and one idempotency key, at most one accepted request is
executed within the retention; every repetition gets a stable representation of its result.
\fBeinmal gateway\fR puts that before any HTTP API; the other commands look after its store, send
requests safely and test what an API promises.
.PP
Every command and subcommand takes \fB\-\-help\fR; \fBeinmal \-\-version\fR prints the version.
A \fISTORE\fR is \fBsqlite:\fIPATH\fR or \fBpostgresql://...\fR, a \fIDURATION\fR a number with a
unit such as \fB500ms\fR, \fB30s\fR, \fB10m\fR, \fB24h\fR, \fB7d\fR.
.SH COMMANDS
)man";

constexpr std::string_view closing = R"man(.SH "EXIT STATUS"
.TP
0
Done.
.TP
1
The check or command failed; nothing was changed unless it says so.
.TP
2
Usage or configuration error; the message names the option or the file and line.
.PP
\fBeinmal request\fR has more, see there.
.SH EXAMPLES
.TP
What has been uncertain for ten minutes:
einmal records list \-\-store sqlite:einmal.db \-\-state uncertain \-\-min\-age 10m
.TP
One record with its whole history:
einmal records show \-\-store sqlite:einmal.db \-\-id \fIOPERATION\-ID\fR
.TP
It happened, and this is its result:
einmal records resolve \-\-store sqlite:einmal.db \-\-id \fIOPERATION\-ID\fR \-\-completed
\-\-status 201 \-\-body\-file order.json \-\-evidence "order 4711 in the ledger"
.TP
Completion in this shell:
source <(einmal completion bash)
.SH FILES
.TP
$XDG_STATE_HOME/einmal/requests.journal
The keys of \fBeinmal request\fR.
.SH ENVIRONMENT
.TP
SUDO_USER, USER
Who changed a record, as the audit has it.
.TP
PGHOST, PGPASSFILE ...
What libpq reads, for \fBpostgresql://\fR stores.
)man";

}  // namespace

std::string manual_page(const CommandWords& program, std::string_view version) {
  std::string text = ".\\\" Written by `einmal manual`; a test holds it to the program.\n";
  text += ".TH EINMAL 1 \"\" \"einmal " + literal(version) + "\" \"User Commands\"\n";
  text += ".SH NAME\n" + literal(program.name) +
          " \\- at most one execution for each idempotency key\n";
  text += ".SH SYNOPSIS\n";
  for (const auto& command : program.commands) {
    text += ".B einmal " + literal(command.name) + "\n";
    std::string below;
    for (const auto& each : command.commands)
      below += (below.empty() ? "" : " | ") + bold(each.name);
    text += (below.empty() ? "" : below + " ") + "[\\fIoptions\\fR]\n.br\n";
  }
  text += opening;
  for (const auto& command : program.commands) text += described(command, program.name);
  return text + std::string(closing);
}

}  // namespace einmal::programs
