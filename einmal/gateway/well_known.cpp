#include "einmal/gateway/well_known.hpp"

#include "einmal/gateway/answers.hpp"
#include "einmal/gateway/discovery.hpp"
#include "einmal/gateway/identify.hpp"
#include "einmal/gateway/operation_document.hpp"
#include "einmal/gateway/report_outcome.hpp"

namespace einmal::gateway {

using http::Problem;
using http::Reason;

namespace {

constexpr std::string_view discovery_path = "/.well-known/idempotency";
constexpr std::string_view own_paths = "/.well-known/einmal/";
constexpr std::string_view operations_path = "/.well-known/einmal/operations/";
constexpr std::string_view result_suffix = "/result";
constexpr std::string_view outcome_suffix = "/outcome";

/// Takes `suffix` off a path that has it and more.
bool take_suffix(std::string_view& path, std::string_view suffix) {
  if (path.size() <= suffix.size() || !path.ends_with(suffix)) return false;
  path.remove_suffix(suffix.size());
  return true;
}

Problem not_found() {
  Problem problem(Reason::not_found);
  problem.keyed = false;
  return problem;
}

/// The operation resource, or its result.
class OperationResource {
 public:
  OperationResource(ClientConnection& client, OperationId id, bool result)
      : client_(client), id_(id), result_(result) {}

  Async<> run() {
    Identified identified = co_await identify(client_, client_.settings().config.times);
    if (auto* refused = std::get_if<Problem>(&identified)) {
      refused->keyed = false;
      co_await answer_problem(client_, *refused);
      co_return;
    }
    account_ = std::move(std::get<std::string>(identified));
    Result<Answer> answered = co_await read();
    const auto* found = answered ? std::get_if<answer::Found>(&*answered) : nullptr;
    if (found == nullptr) {
      Problem problem(Reason::store_unavailable);
      problem.keyed = false;
      co_await answer_problem(client_, problem);
    } else if (!found->record || !is_callers_own(*found->record)) {
      co_await answer_problem(client_, not_found_);
    } else if (result_) {
      co_await answer_result(*found->record);
    } else {
      co_await answer_state(*found->record);
    }
  }

 private:
  Async<Result<Answer>> read() {
    Delivery<Result<Answer>> delivery(client_.core().loop);
    Request request = request::ReadOperation{id_, result_};
    client_.core().engine.ask(std::move(request), [&delivery](Result<Answer> answered) {
      delivery.set(std::move(answered));
    });
    Result<Answer> answered = co_await delivery;
    co_return answered;
  }

  bool is_callers_own(const StoredRecord& stored) const {
    return stored.scope.caller() == account_ &&
           stored.scope.name_space() == client_.settings().config.name_space &&
           stored.condition != Condition::absent;
  }

  Async<> answer_state(const StoredRecord& stored) {
    if (stored.condition == Condition::tombstone) {
      co_await gone(stored);
      co_return;
    }
    co_await answer_operation(client_, stored);
  }

  Async<> answer_result(const StoredRecord& stored) {
    const Record& record = stored.record;
    if (stored.condition == Condition::tombstone) {
      co_await gone(stored);
    } else if (record.result && (stored.condition == Condition::completed ||
                                 stored.condition == Condition::failed)) {
      const ReplayAs as(record.settled_by != SettledBy::owner, {}, true);
      co_await answer_replay(client_, client_.request().headers, record, as);
    } else {
      Problem problem(stored.condition == Condition::processing ? Reason::in_progress
                                                                : Reason::outcome_uncertain);
      problem.operation = operation_url(id_);
      co_await answer_problem(client_, problem);
    }
  }

  Async<> gone(const StoredRecord& stored) {
    Problem problem(Reason::key_expired);
    problem.keyed = false;
    problem.expires = stored.record.expires;
    co_await answer_problem(client_, problem);
  }

  ClientConnection& client_;
  OperationId id_;
  bool result_;
  std::string account_;
  Problem not_found_ = not_found();
};

Async<> answer_discovery(ClientConnection& client) {
  const auto& config = client.settings().config;
  if (config.discovery == Discovery::callers) {
    Identified identified = co_await identify(client, config.times);
    if (auto* refused = std::get_if<Problem>(&identified)) {
      refused->keyed = false;
      co_await answer_problem(client, *refused);
      co_return;
    }
  }
  const std::string body = discovery_document(config);
  http::ResponseHead head;
  head.status = 200;
  head.headers.add("Content-Type", "application/json");
  head.headers.add("Cache-Control", "no-store");
  head.headers.add("Content-Length", std::to_string(body.size()));
  co_await client.answer(head, body);
}

}  // namespace

bool is_well_known(const Settings& settings, std::string_view path) {
  if (path == discovery_path) return settings.config.discovery != Discovery::off;
  return path.substr(0, own_paths.size()) == own_paths;
}

Async<> answer_well_known(ClientConnection& client) {
  std::string_view path = client.path();
  bool result = false, outcome = false;
  std::optional<OperationId> id;
  if (path.substr(0, operations_path.size()) == operations_path) {
    path.remove_prefix(operations_path.size());
    result = take_suffix(path, result_suffix);
    outcome = !result && take_suffix(path, outcome_suffix);
    id = OperationId::from_text(path);
  }
  const bool reads = client.method() == "GET" || client.method() == "HEAD";
  if (outcome ? client.method() != "POST" : !reads) {
    Problem problem(Reason::method_not_allowed);
    problem.keyed = false;
    problem.allow = outcome ? "POST" : "GET, HEAD";
    co_await answer_problem(client, problem);
    co_return;
  }
  if (client.path() == discovery_path) {
    co_await answer_discovery(client);
    co_return;
  }
  if (!id) {
    const Problem problem = not_found();
    co_await answer_problem(client, problem);
    co_return;
  }
  if (outcome) {
    co_await report_outcome(client, *id);
    co_return;
  }
  OperationResource resource(client, *id, result);
  co_await resource.run();
}

}  // namespace einmal::gateway
