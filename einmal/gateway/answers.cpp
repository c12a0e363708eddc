#include "einmal/gateway/answers.hpp"

#include <algorithm>
#include <array>

#include "einmal/gateway/cors.hpp"
#include "einmal/gateway/representation.hpp"
#include "einmal/http/replay_headers.hpp"

namespace einmal::gateway {

Async<> answer_problem(ClientConnection& client, const http::Problem& problem) {
  http::OwnAnswer answer = http::render(problem, client.settings().problem_style);
  if (answer.head.headers.remove("Connection") != 0) client.close_after_answer();
  client.event().reason = http::row(problem.reason).id;
  if (problem.keyed) client.event().outcome = http::name(http::row(problem.reason).mark);
  co_await client.answer(answer.head, answer.body);
}

namespace {

bool speaks_of_caching(const http::HeaderLine& line) {
  constexpr std::array<std::string_view, 6> names = {"Cache-Control", "Expires",       "Pragma",
                                                     "ETag",          "Last-Modified", "Vary"};
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return http::iequals(line.name, name); });
}

http::ResponseHead replay_head(const ClientConnection& client, const Record& record,
                               const ReplayAs& as) {
  const StoredResult& result = *record.result;
  http::ResponseHead head;
  head.status = result.status;
  if (auto stored = http::parse_stored_headers(result.headers)) head.headers = std::move(*stored);
  if (as.as_operation_result) head.headers.remove_if(speaks_of_caching);
  keep_own_origin(client.origin(), head.headers);
  http::Marks marks;
  marks.status =
      as.resolved ? http::IdempotencyStatus::resolved : http::IdempotencyStatus::replayed;
  marks.expires = record.expires;
  marks.effect = result.effect;
  http::add_marks(head.headers, marks);
  head.headers.add("Cache-Control", "no-store");
  if (!as.preference.empty()) head.headers.add("Preference-Applied", as.preference);
  return head;
}

Async<> answer_not_kept(ClientConnection& client, const Record& record) {
  const StoredResult& result = *record.result;
  http::Problem problem(http::Reason::result_not_kept);
  problem.recorded_status = result.status;
  problem.resource_id = result.resource_id;
  problem.operation = operation_url(record.operation_id);
  problem.expires = record.expires;
  co_await answer_problem(client, problem);
}

}  // namespace

Async<> answer_replay(ClientConnection& client, const http::HeaderLines& request,
                      const Record& record, const ReplayAs& as) {
  const StoredResult& result = *record.result;
  if (result.body_kept != BodyKept::kept && result.body_kept != BodyKept::not_supplied) {
    co_await answer_not_kept(client, record);
    co_return;
  }
  http::ResponseHead head = replay_head(client, record, as);
  BytesView body = result.body;
  Bytes changed;
  const bool compress = client.settings().config.compress;
  if (!fit_to_client(request, head.status, compress, head.headers, body, changed)) {
    http::Problem problem(http::Reason::not_acceptable);
    problem.recorded_status = result.status;
    problem.expires = record.expires;
    co_await answer_problem(client, problem);
    co_return;
  }
  if (head.status != 204 && head.status != 304)
    head.headers.add("Content-Length", std::to_string(body.size()));
  client.event().outcome = http::name(as.resolved ? http::IdempotencyStatus::resolved
                                                  : http::IdempotencyStatus::replayed);
  co_await client.answer(head, body);
}

std::optional<Duration> retry_after_uncertain(const OperationConfig& config) {
  if (!config.reconcile) return std::nullopt;
  return std::chrono::seconds(2);
}

std::string operation_url(const OperationId& id) {
  return "/.well-known/einmal/operations/" + id.text();
}

}  // namespace einmal::gateway
