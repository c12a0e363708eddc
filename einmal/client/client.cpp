#include "einmal/client/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "einmal/base/ids.hpp"
#include "einmal/client/operation.hpp"
#include "einmal/client/run.hpp"
#include "einmal/http/key_field.hpp"

namespace einmal::client {

namespace {

struct KeyTag {};

constexpr std::size_t longest_name = 500;
constexpr std::size_t largest_body = 16 * 1024 * 1024;
constexpr std::size_t longest_target = 16 * 1024;
constexpr auto lock_poll = std::chrono::milliseconds(50);

bool is_printable(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

Result<void> check_name(std::string_view name) {
  if (!http::is_token(name)) return failure(ErrorCode::invalid, "a header has no usable name");
  for (const char* own : {"Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect"}) {
    if (http::iequals(name, own))
      return failure(ErrorCode::invalid, fmt::format("the header {} is the client's own", own));
  }
  return {};
}

Result<void> check_lines(const http::HeaderLines& lines) {
  for (const auto line : lines) {
    if (auto name = check_name(line.name); !name) return name;
    if (!http::is_field_value(line.value))
      return failure(ErrorCode::invalid, "a header line is not `Name: value`");
  }
  return {};
}

/// A key among the credentials would stand beside the intent's own.
Result<void> check_credentials(const http::HeaderLines& credentials, std::string_view key_header) {
  if (credentials.has(key_header))
    return failure(ErrorCode::invalid, "a key is no credential: it is the intent's own, for good");
  return check_lines(credentials);
}

/// The application's own key, wherever it stands; taken off the headers.
Result<std::optional<std::string>> own_key(const Request& request, const std::string& key_header,
                                           http::HeaderLines& headers) {
  std::optional<std::string> key = request.key;
  if (const auto line = headers.first(key_header)) {
    if (key || headers.count(key_header) != 1)
      return failure(ErrorCode::invalid, "the request carries more than one key");
    const auto parsed = http::parse_key(*line);
    const auto* present = std::get_if<http::key::Present>(&parsed);
    if (present == nullptr)
      return failure(ErrorCode::invalid, fmt::format("the header {} holds no key", key_header));
    key = present->value;
    headers.remove(key_header);
  }
  if (key) {
    const auto parsed = http::parse_key(*key);
    const auto* present = std::get_if<http::key::Present>(&parsed);
    if (present == nullptr || present->value != *key)
      return failure(ErrorCode::invalid,
                     "a key is 1 to 255 visible ASCII characters without \" , ; \\");
  }
  return key;
}

}  // namespace

Result<void> check_request(const std::string& intent, const Request& request) {
  if (intent.empty() || intent.size() > longest_name || !is_printable(intent))
    return failure(
        ErrorCode::invalid,
        fmt::format("an intent's name is 1 to {} bytes without control characters", longest_name));
  if (!http::is_token(request.method)) return failure(ErrorCode::invalid, "the method is no token");
  for (const char* other : {"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"}) {
    if (http::iequals(request.method, other))
      return failure(ErrorCode::invalid,
                     fmt::format("{} changes nothing and takes no key; send it as it is", other));
  }
  for (const char* known : {"POST", "PUT", "PATCH", "DELETE"}) {
    if (http::iequals(request.method, known) && request.method != known)
      return failure(ErrorCode::invalid,
                     fmt::format("methods are told apart by case: write {}", known));
  }
  if (request.url.size() > longest_target)
    return failure(ErrorCode::invalid, "the URL is too long");
  if (auto url = check_url(request.url); !url) return url;
  if (request.body.size() > largest_body)
    return failure(ErrorCode::invalid, "the body is larger than 16 MiB");
  if (auto lines = check_lines(request.headers); !lines) return lines;
  return check_lines(request.credentials);
}

Client::Client(World world, ClientOptions options)
    : world_(world), options_(std::move(options)), budget_(options_.retry_budget) {}
Client::~Client() = default;

Result<Outcome> Client::send(const std::string& name, const Request& request) {
  if (auto sound = check_request(name, request); !sound) return pass_on(sound);
  if (auto header = check_name(options_.key_header); !header) return pass_on(header);
  if (auto lines = check_credentials(request.credentials, options_.key_header); !lines)
    return pass_on(lines);
  Intent intent;
  intent.name = name;
  intent.key_header = options_.key_header;
  intent.key_style = options_.key_style;
  intent.method = request.method;
  intent.url = request.url;
  intent.headers = request.headers;
  intent.body = request.body;
  intent.created = world_.clock.wall_now();
  auto own = own_key(request, options_.key_header, intent.headers);
  if (!own) return pass_on(own);
  intent.key = *own ? std::move(**own) : Id128<KeyTag>::draw(world_.random).text();
  return run({intent, own->has_value(), true, request.credentials});
}

Result<Outcome> Client::resume(const std::string& name, const http::HeaderLines& credentials) {
  auto found = world_.journal.find(name);
  if (!found) return pass_on(found);
  if (!*found) return failure(ErrorCode::invalid, "the journal knows no intent of that name");
  if (auto lines = check_credentials(credentials, (*found)->intent.key_header); !lines)
    return pass_on(lines);
  return run({(*found)->intent, true, false, credentials});
}

Result<std::optional<IntentLock>> Client::lock(const std::string& intent, BootTime deadline) {
  while (true) {
    auto taken = IntentLock::try_take(world_.journal.path(), intent);
    if (!taken || *taken || world_.clock.boot_now() >= deadline) return taken;
    world_.pause.pause(lock_poll);
  }
}

// The journal cannot be written. Whether an earlier call has sent the intent may still be read.
Outcome Client::without_journal(const Intent& intent, std::string detail) {
  Outcome outcome;
  outcome.intent = intent.name;
  outcome.key = intent.key;
  outcome.detail = std::move(detail);
  const auto found = world_.journal.find(intent.name);
  if (found && *found) outcome.key = (*found)->intent.key;
  if (found && (!*found || !(*found)->progress.doubt.in_doubt)) {
    outcome.verdict = verdict::NotAttempted{Why::journal, std::nullopt};
  } else {
    outcome.verdict = verdict::Unknown{Why::journal, std::nullopt};
  }
  return outcome;
}

Result<Outcome> Client::run(const Call& call) {
  const Intent& intent = call.intent;
  const BootTime deadline = world_.clock.boot_now() + options_.patience.deadline;
  auto held = lock(intent.name, deadline);
  if (!held) return without_journal(intent, held.error().message);
  if (!*held) {
    Outcome outcome = without_journal(intent, "another process is working on this intent");
    outcome.verdict = verdict::Unknown{Why::in_progress, std::nullopt};
    return outcome;
  }
  auto begun = world_.journal.begin(intent);
  if (!begun) {
    if (begun.error().code == ErrorCode::corrupt) return pass_on(begun);
    return without_journal(intent, begun.error().message);
  }
  auto* entry = std::get_if<Entry>(&*begun);
  if (entry == nullptr)
    return failure(ErrorCode::invalid,
                   "this intent's name stands for another request, which was or may have been "
                   "executed; name a new intent for a new request");
  if (call.own_key && entry->intent.key != intent.key)
    return failure(ErrorCode::invalid,
                   "this intent has another key already; give that one, or none");
  const Progress& progress = entry->progress;
  if (!progress.is_settled() || (call.asked_anew && why(*progress.verdict) == Why::rejected))
    return Run(*this, std::move(*entry), call.credentials, deadline).finish();
  Outcome outcome;
  outcome.verdict = *progress.verdict;
  outcome.intent = intent.name;
  outcome.key = entry->intent.key;
  outcome.from_journal = true;
  return outcome;
}

}  // namespace einmal::client
