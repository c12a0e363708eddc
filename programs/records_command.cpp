#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <utility>

#include "commands.hpp"
#include "einmal/base/random.hpp"
#include "einmal/core/check_limits.hpp"
#include "record_view.hpp"
#include "store_url.hpp"

namespace einmal::programs {

namespace {

int complain(const Error& error) {
  fmt::print(stderr, "einmal records: {}\n", error.message);
  return error.code == ErrorCode::invalid ? 2 : 1;
}

/// A store that is there already, with what it needs.
class OpenStore {
 public:
  explicit OpenStore(const std::string& url) {
    StoreSettings settings;
    settings.create = false;
    opened_ = open_store(url, settings, clock_, random_);
  }
  const Result<std::unique_ptr<Store>>& result() const { return opened_; }
  Store& operator*() const { return **opened_; }

 private:
  SystemClock clock_;
  SystemRandom random_;
  Result<std::unique_ptr<Store>> opened_ = failure(ErrorCode::internal, "not opened");
};

std::optional<Condition> condition_named(const std::string& text) {
  static const std::map<std::string, Condition> names{
      {"processing", Condition::processing}, {"completed", Condition::completed},
      {"failed", Condition::failed},         {"uncertain", Condition::uncertain},
      {"tombstone", Condition::tombstone},   {"absent", Condition::absent}};
  const auto found = names.find(text);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

/// Nothing: no such record. Errors: also invalid, when it was not named fully.
Result<std::optional<StoredRecord>> find(Store& store, const RecordName& name, bool with_body) {
  Request request = request::ReadOperation{{}, with_body};
  if (!name.id.empty()) {
    const auto id = OperationId::from_text(name.id);
    if (!id) return failure(ErrorCode::invalid, "--id: not an operation id (a UUID)");
    request = request::ReadOperation{*id, with_body, true};
  } else {
    auto scope = Scope::make(name.name_space, name.caller, name.operation, name.key);
    if (!scope) {
      return failure(ErrorCode::invalid,
                     "--caller, --operation and --key (or --id): " + scope.error().message);
    }
    request = request::ReadScope{std::move(*scope), with_body};
  }
  auto answered = ask(store, std::move(request));
  if (!answered) return pass_on(answered);
  return std::move(std::get<answer::Found>(*answered).record);
}

/// The record that the options name, or the exit code after a complaint.
std::variant<StoredRecord, int> found_or_exit(Store& store, const RecordName& name,
                                              bool with_body) {
  auto found = find(store, name, with_body);
  if (!found) return complain(found.error());
  if (!*found) {
    fmt::print(stderr, "einmal records: no such record\n");
    return 1;
  }
  return std::move(**found);
}

/// Whether the operator wants it. Without a terminal only --yes says so.
bool confirmed(const ChangeOptions& options, std::string_view question) {
  if (options.yes) return true;
  if (::isatty(STDIN_FILENO) == 0) {
    fmt::print(stderr,
               "einmal records: nothing was changed; say --yes to go on without being asked\n");
    return false;
  }
  fmt::print("{} [y/N] ", question);
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

std::string who() {
  const char* user = std::getenv("SUDO_USER");
  if (!user || !*user) user = std::getenv("USER");
  return user && *user ? user : "uid " + std::to_string(::getuid());
}

/// Makes `event` happen to what was looked at, and says what came of it.
int change(Store& store, const StoredRecord& seen, Event event, const ChangeOptions& options,
           std::string_view done, bool quiet = false) {
  if (const auto checked = check_limits(event); !checked) return complain(checked.error());
  if (options.dry_run) {
    fmt::print("nothing was changed (--dry-run)\n");
    return 0;
  }
  request::Transition transition{seen.scope, std::move(event), nullptr,
                                 Actor{who(), options.evidence}};
  const auto decided = ask_transition(store, std::move(transition));
  if (!decided) return complain(decided.error());
  if (std::holds_alternative<decision::Ok>(*decided)) {
    if (!quiet) fmt::print("{}\n", done);
    return 0;
  }
  fmt::print(
      stderr,
      "einmal records: nothing was changed: the record is not what it was, or its state does "
      "not allow this; look at it again\n");
  return 1;
}

/// The result that an operator gives. Nothing: it was complained about.
std::optional<StoredResult> given_result(const ResolveOptions& options) {
  StoredResult result;
  result.status = options.status;
  if (options.no_body == !options.body_file.empty()) {
    fmt::print(stderr, "einmal records: --body-file FILE or --no-body is needed\n");
    return std::nullopt;
  }
  if (options.no_body) {
    result.body_kept = BodyKept::not_supplied;
  } else {
    std::ifstream in(options.body_file, std::ios::binary);
    if (!in) {
      fmt::print(stderr, "einmal records: --body-file: {} cannot be read\n", options.body_file);
      return std::nullopt;
    }
    result.body.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (const auto& line : options.headers) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos || colon == 0 ||
        line.find_first_of("\r\n") != std::string::npos) {
      fmt::print(stderr, "einmal records: --header: 'Name: value' is needed\n");
      return std::nullopt;
    }
    result.headers += line + "\r\n";
  }
  return result;
}

}  // namespace

int records_list(const ListOptions& options) {
  const OpenStore store(options.common.store);
  if (!store.result()) return complain(store.result().error());
  request::List wanted;
  wanted.name_space = options.name_space;
  wanted.caller = options.caller;
  wanted.operation = options.operation;
  wanted.min_age = options.min_age;
  for (const auto& state : options.states) {
    const auto condition = condition_named(state);
    if (!condition) {
      fmt::print(stderr,
                 "einmal records: --state: '{}' is none of processing, completed, failed, "
                 "uncertain, tombstone, absent\n",
                 state);
      return 2;
    }
    wanted.conditions.push_back(*condition);
  }
  std::vector<StoredRecord> records;
  constexpr std::size_t page_size = 500;
  do {
    wanted.limit = std::min(page_size, options.limit - records.size());
    auto answered = ask(*store, wanted);
    if (!answered) return complain(answered.error());
    auto& page = std::get<answer::Page>(*answered);
    std::move(page.records.begin(), page.records.end(), std::back_inserter(records));
    wanted.after = page.next;
  } while (!wanted.after.empty() && records.size() < options.limit);

  const LogDigest digest(*store);
  const View view{digest, options.common.reveal};
  fmt::print("{}", options.common.json ? as_json(records, view) : as_table(records, view));
  if (!wanted.after.empty()) {
    fmt::print(stderr, "there are more; these are the first {} (--limit)\n", records.size());
  }
  return 0;
}

int records_show(const ShowOptions& options) {
  const OpenStore store(options.common.store);
  if (!store.result()) return complain(store.result().error());
  const auto found = found_or_exit(*store, options.record, true);
  if (const auto* code = std::get_if<int>(&found)) return *code;
  const auto& record = std::get<StoredRecord>(found);
  request::ReadAudit history;
  history.scope = record.scope;
  auto audit = ask(*store, std::move(history));
  if (!audit) return complain(audit.error());
  const auto& rows = std::get<answer::AuditRows>(*audit).rows;
  const LogDigest digest(*store);
  const View view{digest, options.common.reveal};
  fmt::print("{}", options.common.json ? as_json(record, rows, view) : as_text(record, rows, view));
  return 0;
}

int records_resolve(const ResolveOptions& options) {
  if (options.completed + options.failed + options.free != 1) {
    fmt::print(stderr, "einmal records: one of --completed, --failed and --free is needed\n");
    return 2;
  }
  if (!options.free && options.status == 0) {
    fmt::print(stderr, "einmal records: --status: the status of the result is needed\n");
    return 2;
  }
  event::Resolve event;
  event.force = options.force;
  event.to = options.free     ? event::Resolution::freed
             : options.failed ? event::Resolution::failed
                              : event::Resolution::completed;
  if (!options.free) {
    event.result = given_result(options);
    if (!event.result) return 2;
  }
  const OpenStore store(options.change.common.store);
  if (!store.result()) return complain(store.result().error());
  const auto found = found_or_exit(*store, options.change.record, false);
  if (const auto* code = std::get_if<int>(&found)) return *code;
  const auto& record = std::get<StoredRecord>(found);
  event.generation = record.record.generation;

  const LogDigest digest(*store);
  if (!options.quiet)
    fmt::print("{}\n", as_text(record, {}, {digest, options.change.common.reveal}));
  const auto* question =
      options.free
          ? "Freeing says that this request can no longer have an effect, not that none was "
            "seen. If it still arrives, or has arrived, the next request under this key makes "
            "a second effect. Free it?"
          : "From now on this result is replayed to every repetition. Resolve it?";
  if (!options.change.dry_run && !confirmed(options.change, question)) return 1;
  return change(*store, record, std::move(event), options.change, "resolved", options.quiet);
}

int records_forget(const ChangeOptions& options) {
  const OpenStore store(options.common.store);
  if (!store.result()) return complain(store.result().error());
  const auto found = found_or_exit(*store, options.record, false);
  if (const auto* code = std::get_if<int>(&found)) return *code;
  const auto& record = std::get<StoredRecord>(found);
  const LogDigest digest(*store);
  fmt::print("{}\n", as_text(record, {}, {digest, options.common.reveal}));
  if (!options.dry_run &&
      !confirmed(options,
                 "The next request under this key will be executed as a new one. Forget it?"))
    return 1;
  return change(*store, record, event::Forget{record.record.generation}, options, "forgotten");
}

int records_stats(const RecordsCommon& options) {
  const OpenStore store(options.store);
  if (!store.result()) return complain(store.result().error());
  const auto answered = ask(*store, request::Stats{});
  if (!answered) return complain(answered.error());
  const auto& stats = std::get<answer::Stats>(*answered);
  fmt::print("{}", options.json ? as_json(stats) : as_text(stats));
  return 0;
}

}  // namespace einmal::programs
