#include "einmal/gateway/report_outcome.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <variant>

#include "einmal/gateway/answers.hpp"
#include "einmal/gateway/operation_document.hpp"
#include "einmal/http/replay_headers.hpp"

namespace einmal::gateway {

namespace json = boost::json;
using http::Problem;
using http::Reason;

namespace {

constexpr std::size_t most_evidence = 1000;
/// Of a report: the body as JSON text may take twice its bytes, and there are headers.
constexpr std::size_t report_limit = std::size_t{4} << 20;

struct Report {
  event::Resolution to = event::Resolution::completed;
  StoredResult result;
  std::optional<Generation> generation;
  std::string evidence;
};

/// What is wrong with a report, by member.
using Wrong = std::string;

std::optional<Wrong> read_headers(const json::value& value, StoredResult& result) {
  const auto* members = value.if_object();
  if (members == nullptr) return "headers: an object of texts is needed";
  http::HeaderLines lines;
  for (const auto& [name, text] : *members) {
    const auto* said = text.if_string();
    if (said == nullptr) return "headers: each value is a text";
    const auto line = std::string(name) + ": " + std::string(said->data(), said->size()) + "\r\n";
    const auto parsed = http::parse_stored_headers(line);
    if (!parsed || parsed->size() != 1) return "headers: not a header line";
    lines.add(std::string_view(name.data(), name.size()), {said->data(), said->size()});
  }
  const auto stored = http::stored_lines(lines, {});
  if (const auto location = stored.first("Location")) result.resource_id = std::string(*location);
  result.headers = http::serialize(stored);
  return std::nullopt;
}

std::optional<Wrong> read_member(const json::key_value_pair& member, Report& report) {
  const std::string_view name(member.key().data(), member.key().size());
  const auto& value = member.value();
  const auto* text = value.if_string();
  if (name == "state") {
    const std::string said = text != nullptr ? std::string(text->data(), text->size()) : "";
    report.to = said == "failed" ? event::Resolution::failed : event::Resolution::completed;
    if (said != "failed" && said != "completed") return R"(state: "completed" or "failed")";
  } else if (name == "status") {
    const auto* number = value.if_int64();
    if (number == nullptr || *number < 200 || *number > 599) return "status: 200 to 599";
    report.result.status = static_cast<int>(*number);
  } else if (name == "headers") {
    return read_headers(value, report.result);
  } else if (name == "body") {
    if (text == nullptr) return "body: a text is needed";
    report.result.body.assign(text->data(), text->size());
    report.result.body_kept = BodyKept::kept;
  } else if (name == "generation") {
    const auto* number = value.if_int64();
    if (number == nullptr || *number < 1) return "generation: the fencing token of the request";
    report.generation = Generation{static_cast<std::uint64_t>(*number)};
  } else if (name == "evidence") {
    if (text == nullptr || text->empty() || text->size() > most_evidence)
      return "evidence: a text of at most 1000 bytes";
    report.evidence.assign(text->data(), text->size());
  } else {
    return "there is no such member; there are: state, status, headers, body, generation, evidence";
  }
  return std::nullopt;
}

std::variant<Report, Wrong> parse_report(const Bytes& body) {
  boost::system::error_code error;
  const json::value document = json::parse(json::string_view(body.data(), body.size()), error);
  const auto* members = error ? nullptr : document.if_object();
  if (members == nullptr) return Wrong("a JSON object is needed");
  Report report;
  report.result.body_kept = BodyKept::not_supplied;
  for (const auto& member : *members) {
    if (auto wrong = read_member(member, report)) return std::move(*wrong);
  }
  if (!members->contains("state")) return Wrong("state is missing");
  if (!members->contains("status")) return Wrong("status is missing");
  if (!members->contains("evidence")) return Wrong("evidence is missing: how is it known?");
  const bool is_success = report.result.status < 400;
  if (is_success != (report.to == event::Resolution::completed))
    return Wrong("state and status contradict each other");
  return report;
}

/// One report on its way.
class Reported {
 public:
  Reported(ClientConnection& client, OperationId id)
      : client_(client), id_(id), memory_(client.core().budget) {}

  Async<> run() {
    const auto& tokens = client_.settings().outcome_tokens;
    if (!tokens) {
      co_await refuse(Reason::not_found, "");
      co_return;
    }
    if (!tokens->admit(client_.request().headers.first("Authorization").value_or(""))) {
      Problem problem(Reason::caller_missing, "a token of outcome_tokens is needed");
      problem.keyed = false;
      problem.challenge = "Bearer";
      co_await answer_problem(client_, problem);
      co_return;
    }
    const bool read = co_await read_body();
    if (!read) co_return;
    auto parsed = parse_report(body_);
    if (const auto* wrong = std::get_if<Wrong>(&parsed)) {
      co_await refuse(Reason::outcome_invalid, *wrong);
      co_return;
    }
    report_ = std::move(std::get<Report>(parsed));
    co_await settle();
  }

 private:
  Async<> refuse(Reason reason, std::string_view detail) {
    Problem problem(reason, std::string(detail));
    problem.keyed = false;
    co_await answer_problem(client_, problem);
  }

  Async<bool> read_body() {
    const bool invited = co_await client_.invite_body();
    if (!invited) co_return false;
    std::optional<Problem> refused;
    while (!refused && !client_.is_request_read()) {
      const auto fed = client_.poll_body();
      if (fed.step == http::Step::error) {
        refused = http::problem_of(client_.parser().error());
      } else if (fed.step == http::Step::body) {
        const std::size_t size = body_.size() + fed.body.size();
        if (size > report_limit) {
          refused = Problem(Reason::body_too_large, "a report has at most 4 MiB");
        } else if (size > body_.capacity() && !memory_.grow_to(2 * size)) {
          refused = Problem(Reason::overloaded, "no memory is free for the report");
        } else {
          body_.append(fed.body);
        }
      } else if (fed.step == http::Step::need_more) {
        client_.stream().expires_after(client_.settings().config.limits.body_time);
        const IoResult got = co_await client_.fill(Buffer::small);
        if (got.status == IoStatus::timed_out)
          refused = Problem(Reason::request_timeout, "the report came too slowly");
        if (!got.ok() && !refused) {
          client_.close_after_answer();
          co_return false;
        }
      }
    }
    if (!refused) co_return true;
    refused->keyed = false;
    co_await answer_problem(client_, *refused);
    co_return false;
  }

  Async<Result<Answer>> ask(Request request) {
    Delivery<Result<Answer>> delivery(client_.core().loop);
    client_.core().engine.ask(std::move(request), [&delivery](Result<Answer> answered) {
      delivery.set(std::move(answered));
    });
    Result<Answer> answered = co_await delivery;
    co_return answered;
  }

  Async<> settle() {
    Request look = request::ReadOperation{id_, false};
    Result<Answer> answered = co_await ask(std::move(look));
    const auto* found = answered ? std::get_if<answer::Found>(&*answered) : nullptr;
    if (found == nullptr) {
      co_await refuse(Reason::store_unavailable, "");
      co_return;
    }
    const auto& name_space = client_.settings().config.name_space;
    if (!found->record || found->record->scope.name_space() != name_space ||
        found->record->condition == Condition::absent) {
      co_await refuse(Reason::not_found, "");
      co_return;
    }
    StoredRecord seen = *found->record;
    if (seen.condition != Condition::uncertain) {
      co_await answer_as_it_is(seen);
      co_return;
    }
    event::Resolve resolve;
    resolve.generation = report_.generation.value_or(seen.record.generation);
    resolve.to = report_.to;
    resolve.result = report_.result;
    resolve.by = SettledBy::reconciler;
    Request change = request::Transition{
        seen.scope, std::move(resolve), nullptr, {"outcome report", report_.evidence}};
    Result<Answer> changed = co_await ask(std::move(change));
    const auto* decision = changed ? std::get_if<Decision>(&*changed) : nullptr;
    if (decision == nullptr) {
      co_await refuse(Reason::store_unavailable, "");
      co_return;
    }
    if (const auto* other = std::get_if<decision::Changed>(decision)) {
      if (!other->record || other->record->state == State::uncertain) {
        co_await refuse(Reason::outcome_conflict, "generation is not that of the operation");
        co_return;
      }
    }
    Request again = request::ReadOperation{id_, false};
    Result<Answer> now = co_await ask(std::move(again));
    const auto* stands = now ? std::get_if<answer::Found>(&*now) : nullptr;
    if (stands == nullptr || !stands->record) {
      co_await refuse(Reason::store_unavailable, "");
      co_return;
    }
    StoredRecord settled = *stands->record;
    co_await answer_as_it_is(settled);
  }

  /// 200 where the record says what the report says, as when a report comes twice.
  Async<> answer_as_it_is(const StoredRecord& seen) {
    const bool completed = seen.condition == Condition::completed;
    const bool failed = seen.condition == Condition::failed;
    const bool agrees = (completed && report_.to == event::Resolution::completed) ||
                        (failed && report_.to == event::Resolution::failed);
    if (agrees && seen.record.result && seen.record.result->status == report_.result.status) {
      co_await answer_operation(client_, seen);
      co_return;
    }
    std::string_view detail = "it was settled otherwise";
    if (seen.condition == Condition::processing)
      detail = "it is being executed; its owner says what came of it";
    co_await refuse(Reason::outcome_conflict, detail);
  }

  ClientConnection& client_;
  OperationId id_;
  Bytes body_;
  Budget::Share memory_;
  Report report_;
};

}  // namespace

Async<> report_outcome(ClientConnection& client, OperationId id) {
  Reported reported(client, id);
  co_await reported.run();
}

}  // namespace einmal::gateway
