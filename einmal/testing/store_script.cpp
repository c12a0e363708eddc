#include "einmal/testing/store_script.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <vector>

namespace einmal::testing {

namespace {

[[noreturn]] void not_understood(std::string_view line) {
  std::fprintf(stderr, "store script: not understood: %.*s\n", static_cast<int>(line.size()),
               line.data());
  std::abort();
}

std::int64_t number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) not_understood(text);
  return value;
}

StoredResult result_of(int status, const std::optional<std::string>& resource) {
  StoredResult result;
  result.status = status;
  result.headers = "Content-Type: text/plain\r\n";
  result.body = "body of " + std::to_string(status);
  result.resource_id = resource;
  return result;
}

Digest digest_of(int number) {
  Digest digest{};
  digest[0] = static_cast<std::uint8_t>(number);
  digest[31] = 1;
  return digest;
}

}  // namespace

Duration duration_of(std::string_view text) {
  const std::size_t unit_at = text.find_first_not_of("-0123456789");
  const std::int64_t count = number_of(text.substr(0, unit_at));
  const std::string_view unit = unit_at == text.npos ? "" : text.substr(unit_at);
  if (unit == "us") return Duration(count);
  if (unit == "ms") return std::chrono::milliseconds(count);
  if (unit == "s") return std::chrono::seconds(count);
  if (unit == "m") return std::chrono::minutes(count);
  if (unit == "h") return std::chrono::hours(count);
  if (unit == "d") return std::chrono::hours(24 * count);
  not_understood(text);
}

/// A line's words; `option` is what stands behind NAME=.
struct StoreScript::Line {
  explicit Line(std::string_view line) : text(line) {
    std::istringstream in(text);
    for (std::string word; in >> word;) words.push_back(word);
    if (words.empty()) not_understood(text);
  }

  const std::string& verb() const { return words.front(); }
  const std::string& word(std::size_t at) const {
    if (at >= words.size()) not_understood(text);
    return words[at];
  }
  bool has(std::string_view flag) const {
    for (const std::string& word : words) {
      if (word == flag) return true;
    }
    return false;
  }
  std::optional<std::string> option(std::string_view name) const {
    for (const std::string& word : words) {
      if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
        return word.substr(name.size() + 1);
    }
    return std::nullopt;
  }

  std::string text;
  std::vector<std::string> words;
};

Scope StoreScript::scope(const std::string& key) {
  return *Scope::make("app", "alice", "create-order", key);
}

OwnerToken StoreScript::token(const std::string& owner) {
  std::string bytes = owner;
  bytes.resize(16, '.');
  return *OwnerToken::from_bytes(bytes);
}

Profile StoreScript::profile(int number) {
  return {digest_of(100 + number), "profile " + std::to_string(number)};
}

Generation StoreScript::told(const Line& line) const {
  const auto found = generations_.find({line.word(1), line.word(2)});
  return found == generations_.end() ? Generation{1} : found->second;
}

Generation StoreScript::shown(const Line& line) {
  std::uint64_t generation = 1;
  auto answered = ask(*store_, request::ReadScope{scope(line.word(1)), false});
  if (answered) {
    if (const auto* found = std::get_if<answer::Found>(&*answered); found && found->record)
      generation = number(found->record->record.generation);
  }
  if (line.has("stale")) generation = generation > 1 ? generation - 1 : generation + 1;
  return Generation{generation};
}

event::Claim StoreScript::claim_of(const Line& line) {
  event::Claim claim;
  const int body = static_cast<int>(number_of(line.option("body").value_or("1")));
  const int under = static_cast<int>(number_of(line.option("profile").value_or("1")));
  claim.fingerprint = {profile(under).id, digest_of(body)};
  claim.owner = token(line.word(2));
  claim.operation_id = OperationId::draw(random_);
  const std::string lease = line.option("lease").value_or("30s");
  if (lease != "none") claim.policies.lease = duration_of(lease);
  if (line.has("takeover")) claim.policies.on_lease_expiry = OnLeaseExpiry::takeover;
  claim.policies.retention = duration_of(line.option("retention").value_or("1h"));
  if (const auto tombstone = line.option("refuse")) {
    claim.policies.after_expiry = AfterExpiry::refuse;
    claim.policies.tombstone = duration_of(*tombstone);
  }
  return claim;
}

event::Resolve StoreScript::resolve_of(const Line& line) {
  event::Resolve resolve;
  resolve.generation = shown(line);
  const std::string& to = line.word(2);
  if (to == "completed") resolve.result = result_of(201, std::nullopt);
  if (to == "failed") {
    resolve.to = event::Resolution::failed;
    resolve.result = result_of(402, std::nullopt);
  }
  if (to == "freed") resolve.to = event::Resolution::freed;
  resolve.by = line.has("reconciler") ? SettledBy::reconciler : SettledBy::operator_;
  resolve.force = line.has("force");
  return resolve;
}

Event StoreScript::event_of(const Line& line) {
  const std::string& verb = line.verb();
  if (verb == "claim") return claim_of(line);
  if (verb == "doubt") return event::Doubt{shown(line)};
  if (verb == "forget") return event::Forget{shown(line)};
  if (verb == "resolve") return resolve_of(line);
  const Generation generation = told(line);
  const OwnerToken owner = token(line.word(2));
  if (verb == "renew") return event::Renew{generation, owner};
  if (verb == "release") return event::Release{generation, owner};
  if (verb == "abandon") return event::Abandon{generation, owner};
  if (verb == "mark") {
    event::MarkUncertain mark{generation, owner, UncertainCause::outcome_unknown, std::nullopt};
    if (const auto seen = line.option("seen"))
      mark.seen = result_of(static_cast<int>(number_of(*seen)), std::nullopt);
    return mark;
  }
  if (verb == "complete" || verb == "fail") {
    const auto outcome = verb == "complete" ? event::Final::completed : event::Final::failed;
    const int status = static_cast<int>(number_of(line.word(3)));
    return event::Settle{outcome, generation, owner, result_of(status, line.option("resource")),
                         line.has("declared")};
  }
  not_understood(line.text);
}

Result<Answer> StoreScript::transition(const Line& line, Event event) {
  request::Transition transition{scope(line.word(1)), std::move(event), nullptr, {}};
  if (std::holds_alternative<event::Claim>(transition.event)) {
    const int under = static_cast<int>(number_of(line.option("profile").value_or("1")));
    transition.profile = std::make_shared<const Profile>(profile(under));
  }
  const bool by_operator =
      line.verb() == "doubt" || line.verb() == "forget" || line.verb() == "resolve";
  if (by_operator) transition.actor = {"operator", "seen in the ledger"};
  Result<Answer> answered = ask(*store_, std::move(transition));
  if (!answered) return answered;
  const auto* decision = std::get_if<Decision>(&*answered);
  const auto* execute = decision ? std::get_if<decision::Execute>(decision) : nullptr;
  if (execute) {
    generations_[{line.word(1), line.word(2)}] = execute->record.generation;
    operations_[line.word(1)] = execute->record.operation_id;
  }
  return answered;
}

Request StoreScript::request_of(const Line& line) {
  const std::string& verb = line.verb();
  const auto limit = [&](std::size_t otherwise) {
    return line.words.size() > 1 ? static_cast<std::size_t>(number_of(line.word(1))) : otherwise;
  };
  if (verb == "read") return request::ReadScope{scope(line.word(1)), true};
  if (verb == "operation") return request::ReadOperation{operations_[line.word(1)], true};
  if (verb == "profile") return request::ReadProfile{profile(static_cast<int>(limit(1))).id};
  if (verb == "overdue") return request::Overdue{limit(200)};
  if (verb == "sweep") return request::Sweep{limit(200)};
  if (verb == "stats") return request::Stats{};
  if (verb == "live") return request::LiveOperations{"app"};
  if (verb == "count") return request::CountCaller{"app", "alice"};
  if (verb == "advance-generations") return request::AdvanceGenerations{{"operator", "restored"}};
  if (verb == "accept-time") return request::AcceptTime{{"operator", "checked"}};
  if (verb == "audit") {
    request::ReadAudit read;
    if (line.words.size() > 1) read.scope = scope(line.word(1));
    return read;
  }
  if (verb == "list") {
    request::List list;
    list.limit = 1000;
    return list;
  }
  not_understood(line.text);
}

Result<Answer> StoreScript::run(std::string_view text) {
  const Line line(text);
  static const std::vector<std::string> events{"claim", "renew", "release", "abandon", "complete",
                                               "fail",  "mark",  "doubt",   "forget",  "resolve"};
  for (const std::string& verb : events) {
    if (line.verb() == verb) return transition(line, event_of(line));
  }
  return ask(*store_, request_of(line));
}

}  // namespace einmal::testing
