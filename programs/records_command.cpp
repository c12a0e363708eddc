#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <utility>

#include "commands.hpp"
#include "einmal/base/random.hpp"
#include "einmal/base/read_file.hpp"
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

/// What a state's word asks the store for, and which of the records that come are meant: a store
/// knows freed and expired ones as absent.
struct StateWord {
  const char* word;
  Condition condition;
  std::optional<bool> freed;
};
constexpr StateWord state_words[] = {
    {"processing", Condition::processing, {}}, {"completed", Condition::completed, {}},
    {"failed", Condition::failed, {}},         {"uncertain", Condition::uncertain, {}},
    {"tombstone", Condition::tombstone, {}},   {"freed", Condition::absent, true},
    {"expired", Condition::absent, false}};

class StateFilter {
 public:
  /// False: there is no such state.
  bool add(const std::string& word) {
    for (const auto& each : state_words) {
      if (each.word != word) continue;
      wanted_.push_back(&each);
      return true;
    }
    return false;
  }
  std::vector<Condition> conditions() const {
    std::vector<Condition> all;
    for (const auto* each : wanted_) {
      if (std::find(all.begin(), all.end(), each->condition) == all.end())
        all.push_back(each->condition);
    }
    return all;
  }
  bool takes(const StoredRecord& stored) const {
    const bool freed = stored.record.state == State::freed;
    return wanted_.empty() ||
           std::any_of(wanted_.begin(), wanted_.end(), [&](const StateWord* each) {
             return each->condition == stored.condition && each->freed.value_or(freed) == freed;
           });
  }

 private:
  std::vector<const StateWord*> wanted_;
};

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
  return answer == "y" || answer == "Y" || answer == "yes";
}

std::string who() {
  const char* user = std::getenv("SUDO_USER");
  if (!user || !*user) user = std::getenv("USER");
  return user && *user ? user : "uid " + std::to_string(::getuid());
}

/// One change of one record that was looked at.
struct Change {
  Event event;
  std::string_view done;      ///< What to say when it is.
  std::string_view question;  ///< What to ask before.
  bool quiet = false;
};

/// Whether the record still is what the operator looked at, and its state allows the change.
bool allows(const StoredRecord& seen, const Event& event) {
  return std::holds_alternative<decision::Ok>(decide(seen.record, event, Now{}).decision);
}

/// What was done or would be, and on which record.
void report(const StoredRecord& record, const Change& change, const ChangeOptions& options) {
  if (change.quiet) return;
  if (options.common.json) {
    fmt::print("{{\"id\":\"{}\",\"generation\":{},\"{}\":\"{}\"}}\n",
               record.record.operation_id.text(), number(record.record.generation),
               options.dry_run ? "would_be" : "done", change.done);
  } else if (options.dry_run) {
    fmt::print("would be {}; nothing was changed (--dry-run)\n", change.done);
  } else {
    fmt::print("{}\n", change.done);
  }
}

int refuse() {
  fmt::print(
      stderr,
      "einmal records: nothing was changed: the record is not what it was, or its state does "
      "not allow this; look at it again\n");
  return 1;
}

/// Shows the record, asks, makes the event happen to what was looked at, and says what came of it.
int change(Store& store, const StoredRecord& seen, Change change, const ChangeOptions& options) {
  if (const auto checked = check_limits(change.event); !checked) return complain(checked.error());
  const LogDigest digest(store);
  if (!change.quiet && !options.common.json)
    fmt::print("{}\n", as_text(seen, {}, {digest, options.common.reveal}));
  const bool same =
      options.generation.value_or(number(seen.record.generation)) == number(seen.record.generation);
  if (!same || !allows(seen, change.event)) return refuse();
  if (options.dry_run) {
    report(seen, change, options);
    return 0;
  }
  if (!confirmed(options, change.question)) return 1;
  request::Transition transition{seen.scope, change.event, nullptr, Actor{who(), options.evidence}};
  const auto decided = ask_transition(store, std::move(transition));
  if (!decided) return complain(decided.error());
  if (!std::holds_alternative<decision::Ok>(*decided)) return refuse();
  report(seen, change, options);
  return 0;
}

/// Opens the store, finds the record, and makes what `event_for` says happen to it.
template <class EventFor>
int change_record(const ChangeOptions& options, std::string_view done, std::string_view question,
                  EventFor event_for, bool quiet = false) {
  const OpenStore store(options.common.store);
  if (!store.result()) return complain(store.result().error());
  const auto found = found_or_exit(*store, options.record, false);
  if (const auto* code = std::get_if<int>(&found)) return *code;
  const auto& record = std::get<StoredRecord>(found);
  return change(*store, record, {event_for(record.record.generation), done, question, quiet},
                options);
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
    auto body = read_file(options.body_file);
    if (!body) {
      fmt::print(stderr, "einmal records: --body-file: {}\n", body.error().message);
      return std::nullopt;
    }
    result.body = std::move(*body);
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

std::string record_states() {
  std::string words;
  for (const auto& each : state_words) words += (words.empty() ? "" : ",") + std::string(each.word);
  return words;
}

int records_list(const ListOptions& options) {
  const OpenStore store(options.common.store);
  if (!store.result()) return complain(store.result().error());
  request::List wanted;
  wanted.name_space = options.name_space;
  wanted.caller = options.caller;
  wanted.operation = options.operation;
  wanted.min_age = options.min_age;
  StateFilter filter;
  for (const auto& state : options.states) {
    if (filter.add(state)) continue;
    fmt::print(stderr, "einmal records: --state: '{}' is none of {}\n", state, record_states());
    return 2;
  }
  wanted.conditions = filter.conditions();
  std::vector<StoredRecord> records;
  constexpr std::size_t page_size = 500;
  do {
    wanted.limit = std::min(page_size, options.limit - records.size());
    auto answered = ask(*store, wanted);
    if (!answered) return complain(answered.error());
    auto& page = std::get<answer::Page>(*answered);
    std::copy_if(std::make_move_iterator(page.records.begin()),
                 std::make_move_iterator(page.records.end()), std::back_inserter(records),
                 [&](const StoredRecord& record) { return filter.takes(record); });
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

/// The rows of a record that stands, or of one that is gone and was named as `name` says.
Result<std::vector<AuditRow>> history_of(Store& store, const std::optional<StoredRecord>& record,
                                         const RecordName& name) {
  request::ReadAudit wanted;
  if (record) {
    wanted.scope = record->scope;
  } else if (!name.id.empty()) {
    wanted.id = OperationId::from_text(name.id);
  } else {
    wanted.scope = *Scope::make(name.name_space, name.caller, name.operation, name.key);
  }
  auto audit = ask(store, std::move(wanted));
  if (!audit) return pass_on(audit);
  return std::move(std::get<answer::AuditRows>(*audit).rows);
}

int records_show(const ShowOptions& options) {
  const OpenStore store(options.common.store);
  if (!store.result()) return complain(store.result().error());
  const auto found = find(*store, options.record, true);
  if (!found) return complain(found.error());
  const auto rows = history_of(*store, *found, options.record);
  if (!rows) return complain(rows.error());
  if (!*found && rows->empty()) {
    fmt::print(stderr, "einmal records: no such record\n");
    return 1;
  }
  const LogDigest digest(*store);
  const View view{digest, options.common.reveal};
  const bool json = options.common.json;
  if (!*found) {
    fmt::print("{}", json ? as_json(*rows) : "the record is gone; its history:\n" + as_text(*rows));
  } else {
    fmt::print("{}", json ? as_json(**found, *rows, view) : as_text(**found, *rows, view));
  }
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
  const auto* question =
      options.free
          ? "Freeing says that this request can no longer have an effect, not that none was "
            "seen. If it still arrives, or has arrived, the next request under this key makes "
            "a second effect. Free it?"
          : "From now on this result is replayed to every repetition. Resolve it?";
  return change_record(
      options.change, "resolved", question,
      [&](Generation generation) -> Event {
        event.generation = generation;
        return event;
      },
      options.quiet);
}

int records_forget(const ChangeOptions& options) {
  return change_record(options, "forgotten",
                       "The next request under this key will be executed as a new one. Forget it?",
                       [](Generation generation) -> Event { return event::Forget{generation}; });
}

int records_doubt(const ChangeOptions& options) {
  return change_record(
      options, "uncertain",
      "From now on the outcome of this request counts as unknown. Make it uncertain?",
      [](Generation generation) -> Event { return event::Doubt{generation}; });
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
