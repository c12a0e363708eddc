#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "einmal/base/ids.hpp"
#include "einmal/client/client.hpp"
#include "einmal/http/json_text.hpp"

namespace einmal::programs {

namespace {

namespace fs = std::filesystem;
using client::Answer;
using client::Entry;
using client::Journal;
using client::Outcome;

constexpr int refused = 3, unknown = 4, not_attempted = 5;

int exit_code(const client::Verdict& verdict) {
  constexpr int codes[] = {0, 0, refused, not_attempted, unknown};
  return codes[verdict.index()];
}

/// To a person. That nobody can read it changes no verdict, so no exit code.
template <class... Values>
void say(fmt::format_string<Values...> form, Values&&... values) {
  const std::string text = fmt::format(form, std::forward<Values>(values)...);
  (void)std::fputs(text.c_str(), stderr);
}

int complain(const Error& error) {
  say("einmal request: {}\n", error.message);
  const bool usage = error.code == ErrorCode::invalid || error.code == ErrorCode::incompatible;
  return usage ? 2 : 1;
}

/// The user's own journal, its directory made.
Result<std::string> default_journal() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  fs::path directory;
  if (state != nullptr && *state == '/') {
    directory = state;
  } else if (home != nullptr && *home == '/') {
    directory = fs::path(home) / ".local" / "state";
  } else {
    return failure(ErrorCode::invalid, "--journal: neither XDG_STATE_HOME nor HOME is set");
  }
  directory /= "einmal";
  std::error_code error;
  const bool is_new = fs::create_directories(directory, error);
  if (error)
    return failure(ErrorCode::invalid, fmt::format("--journal: cannot create {}: {}",
                                                   directory.string(), error.message()));
  if (is_new) ::chmod(directory.c_str(), 0700);
  return (directory / "requests.journal").string();
}

void member(std::string& json, std::string_view name, std::string_view value, bool text = true) {
  json += json.size() == 1 ? "" : ",";
  http::append_json_string(json, name);
  json += ':';
  if (text) {
    http::append_json_string(json, value);
  } else {
    json += value;
  }
}

std::string as_json(const Outcome& outcome, bool with_body) {
  std::string json = "{";
  const Answer* answer = client::answer_of(outcome.verdict);
  const auto why = client::why(outcome.verdict);
  member(json, "intent", outcome.intent);
  member(json, "key", outcome.key);
  member(json, "verdict", client::name(outcome.verdict));
  if (why != client::Why::none) member(json, "why", client::name(why));
  member(json, "attempts", std::to_string(outcome.attempts), false);
  member(json, "from_journal", outcome.from_journal ? "true" : "false", false);
  if (answer != nullptr) member(json, "status", std::to_string(answer->status), false);
  if (!outcome.detail.empty()) member(json, "detail", outcome.detail);
  if (outcome.journal_error) member(json, "journal_error", outcome.journal_error->message);
  if (answer != nullptr && answer->body_cut) member(json, "body_cut", "true", false);
  if (answer != nullptr && with_body && !answer->body_cut) member(json, "body", answer->body);
  return json + "}\n";
}

/// As one word of a shell command.
std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string in_words(const Outcome& outcome) {
  std::string line(client::name(outcome.verdict));
  const auto why = client::why(outcome.verdict);
  if (line == "not_attempted") line = "not attempted";
  if (why != client::Why::none) line += fmt::format(" ({})", client::name(why));
  const Answer* answer = client::answer_of(outcome.verdict);
  if (answer != nullptr) line += fmt::format(", status {}", answer->status);
  if (outcome.from_journal) {
    line += ", from the journal";
  } else {
    line += fmt::format(", {} attempt{}", outcome.attempts, outcome.attempts == 1 ? "" : "s");
  }
  line += fmt::format(", key {}", outcome.key);
  if (!outcome.detail.empty()) line += fmt::format("; last: {}", outcome.detail);
  if (outcome.verdict.index() >= 3)
    line += "\neinmal request: the intent is kept; again: einmal request --resume --intent " +
            shell_word(outcome.intent);
  return line;
}

class RequestCommand {
 public:
  explicit RequestCommand(RequestOptions& options) : options_(options) {}

  int run() {
    if (auto sound = check_usage(); !sound) return complain(sound.error());
    auto path =
        options_.journal.empty() ? default_journal() : Result<std::string>(options_.journal);
    if (!path) return complain(path.error());
    auto journal = Journal::open(*path, random_, clock_.wall_now());
    if (!journal) return complain(journal.error());
    journal_ = std::move(*journal);
    if (options_.pending) return list_pending();
    if (!options_.forget.empty()) return forget();
    transport_ = client::make_curl_transport(options_.curl);
    client_.emplace(client::Client::World{*journal_, *transport_, clock_, random_, pause_},
                    options_.client);
    return options_.resume ? resume() : send();
  }

 private:
  Result<void> check_usage() const {
    const bool sends = !options_.pending && !options_.resume && options_.forget.empty();
    if (sends && options_.request.url.empty())
      return failure(ErrorCode::invalid, "METHOD and URL are missing; see --help");
    if (!sends && !options_.request.url.empty())
      return failure(ErrorCode::invalid,
                     "--pending, --resume and --forget take what they need from the journal: "
                     "leave METHOD and URL out");
    if (options_.resume && !options_.request.body.empty())
      return failure(ErrorCode::invalid, "--resume sends what the journal holds: no --data");
    return {};
  }

  int send() {
    struct OnceTag {};
    std::string intent = options_.intent;
    if (intent.empty())
      intent =
          fmt::format("{} {} #{}", options_.request.method, options_.request.url.substr(0, 300),
                      Id128<OnceTag>::draw(random_).text());
    auto outcome = client_->send(intent, options_.request);
    return outcome ? tell(*outcome) : complain(outcome.error());
  }

  /// The worst of all: unknown before not attempted before refused.
  int resume() {
    std::vector<std::string> names;
    if (!options_.intent.empty()) {
      names.push_back(options_.intent);
    } else {
      auto open = journal_->list(Journal::Which::open);
      if (!open) return complain(open.error());
      for (const auto& entry : *open) names.push_back(entry.intent.name);
    }
    int worst = 0;
    const auto rank = [](int code) {
      return code == unknown ? 4 : code == not_attempted ? 3 : code == refused ? 2 : code;
    };
    auto credentials = options_.request.credentials;
    for (const auto line : options_.request.headers) credentials.add(line.name, line.value);
    for (const auto& name : names) {
      auto outcome = client_->resume(name, credentials);
      const int code = outcome ? tell(*outcome) : complain(outcome.error());
      if (!outcome && code == 1) return code;
      if (rank(code) > rank(worst)) worst = code;
    }
    return worst;
  }

  int tell(const Outcome& outcome) {
    const Answer* answer = client::answer_of(outcome.verdict);
    const bool show = answer != nullptr && client::is_settled(outcome.verdict);
    if (show && !options_.output.empty() && !write_file(answer->body)) {
      say("einmal request: --output: {} cannot be written; the verdict stands: {}\n",
          options_.output, client::name(outcome.verdict));
      return exit_code(outcome.verdict) == 0 ? 1 : exit_code(outcome.verdict);
    }
    bool printed = true;
    if (options_.json_output) {
      printed = print(as_json(outcome, options_.output.empty()));
    } else {
      if (show && options_.output.empty()) printed = print_body(answer->body);
      if (!options_.silent) say("einmal request: {}\n", in_words(outcome));
      if (show && answer->body_cut)
        say("einmal request: the answer's body was too large to keep\n");
    }
    if (outcome.journal_error)
      say("einmal request: the verdict could not be kept: {}\n", outcome.journal_error->message);
    if (!printed) {
      say("einmal request: standard output cannot be written; the verdict stands: {}\n",
          client::name(outcome.verdict));
      if (exit_code(outcome.verdict) == 0) return 1;
    }
    return exit_code(outcome.verdict);
  }

  /// False: not all of it reached standard output.
  static bool print(std::string_view text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    return std::fflush(stdout) == 0 && written;
  }

  static bool print_body(std::string_view body) {
    const bool open_line = !body.empty() && body.back() != '\n' && ::isatty(STDOUT_FILENO) == 1;
    return print(body) && (!open_line || print("\n"));
  }

  bool write_file(const Bytes& bytes) const {
    std::FILE* file = std::fopen(options_.output.c_str(), "wb");
    if (file == nullptr) return false;
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    return std::fclose(file) == 0 && written;
  }

  int list_pending() {
    auto open = journal_->list(Journal::Which::open);
    auto damaged = journal_->damaged();
    if (!open) return complain(open.error());
    if (!damaged) return complain(damaged.error());
    std::string json = "[", lines;
    for (const auto& entry : *open) {
      if (options_.json_output) {
        json += (json.size() == 1 ? "" : ",") + pending_json(entry);
      } else {
        lines += pending_line(entry);
      }
    }
    for (const auto& entry : *damaged) {
      if (!options_.json_output) {
        lines += fmt::format("#{}  damaged, may have been sent: {}\n", entry.id, entry.name);
        continue;
      }
      std::string object = "{";
      member(object, "id", std::to_string(entry.id), false);
      member(object, "intent", entry.name);
      member(object, "damaged", "true", false);
      json += (json.size() == 1 ? "" : ",") + object + "}";
    }
    if (print(options_.json_output ? json + "]\n" : lines)) return 0;
    say("einmal request: standard output cannot be written\n");
    return 1;
  }

  std::string age(const Entry& entry) const {
    const auto since = entry.progress.first_sent.value_or(entry.intent.created);
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(clock_.wall_now() - since).count();
    return std::to_string(seconds);
  }

  std::string pending_json(const Entry& entry) const {
    std::string object = "{";
    const auto& doubt = entry.progress.doubt;
    member(object, "id", std::to_string(entry.id), false);
    member(object, "intent", entry.intent.name);
    member(object, "key", entry.intent.key);
    member(object, "method", entry.intent.method);
    member(object, "url", entry.intent.url);
    member(object, "attempts", std::to_string(entry.progress.attempts), false);
    member(object, "may_have_been_sent", doubt.in_doubt ? "true" : "false", false);
    if (doubt.in_doubt) member(object, "why", client::name(doubt.why));
    member(object, "age_seconds", age(entry), false);
    return object + "}";
  }

  std::string pending_line(const Entry& entry) const {
    const auto& doubt = entry.progress.doubt;
    return fmt::format("{}  {} {}  key {}  {} s old  {}\n", entry.intent.name, entry.intent.method,
                       entry.intent.url, entry.intent.key, age(entry),
                       doubt.in_doubt
                           ? fmt::format("may have been sent ({})", client::name(doubt.why))
                           : std::string("not sent"));
  }

  int forget() {
    std::optional<std::int64_t> id;
    const std::string& name = options_.forget;
    if (name.front() == '#') {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
      if (error == std::errc() && end == name.data() + name.size()) id = number;
    }
    std::optional<client::IntentLock> lock;
    if (!id) {
      auto taken = client::IntentLock::try_take(journal_->path(), name);
      if (!taken) return complain(taken.error());
      if (!*taken) {
        say("einmal request: --forget: another process is at work on this intent\n");
        return 1;
      }
      lock = std::move(*taken);
      auto found = journal_->find(name);
      if (!found) return complain(found.error());
      if (*found) id = (*found)->id;
    }
    auto forgotten = id ? journal_->forget(*id) : Result<bool>(false);
    if (!forgotten) return complain(forgotten.error());
    if (!*forgotten) {
      say("einmal request: --forget: the journal knows no such intent\n");
      return 1;
    }
    return 0;
  }

  RequestOptions& options_;
  SystemClock clock_;
  SystemRandom random_;
  client::SystemPause pause_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<client::Transport> transport_;
  std::optional<client::Client> client_;
};

}  // namespace

int request(RequestOptions options) { return RequestCommand(options).run(); }

}  // namespace einmal::programs
