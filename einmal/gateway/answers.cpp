#include "einmal/gateway/answers.hpp"

#include "einmal/http/replay_headers.hpp"

namespace einmal::gateway {

Async<> answer_problem(ClientConnection& client, const http::Problem& problem) {
  http::OwnAnswer answer = http::render(problem, client.settings().problem_style);
  if (answer.head.headers.remove("Connection") != 0) client.close_after_answer();
  client.event().reason = http::row(problem.reason).id;
  if (problem.keyed) client.event().outcome = http::name(http::row(problem.reason).mark);
  co_await client.answer(answer.head, answer.body);
}

Async<> answer_replay(ClientConnection& client, const Record& record, bool resolved,
                      bool preference_applied) {
  const StoredResult& result = *record.result;
  if (result.body_kept != BodyKept::kept && result.body_kept != BodyKept::not_supplied) {
    http::Problem problem(http::Reason::result_not_kept);
    problem.recorded_status = result.status;
    problem.resource_id = result.resource_id;
    problem.operation = operation_url(record.operation_id);
    problem.expires = record.expires;
    co_await answer_problem(client, problem);
    co_return;
  }
  http::ResponseHead head;
  head.status = result.status;
  if (auto stored = http::parse_stored_headers(result.headers)) head.headers = std::move(*stored);
  http::Marks marks;
  marks.status = resolved ? http::IdempotencyStatus::resolved : http::IdempotencyStatus::replayed;
  marks.expires = record.expires;
  marks.effect = result.effect;
  http::add_marks(head.headers, marks);
  head.headers.add("Cache-Control", "no-store");
  if (preference_applied) head.headers.add("Preference-Applied", "wait");
  if (head.status != 204 && head.status != 304)
    head.headers.add("Content-Length", std::to_string(result.body.size()));
  client.event().outcome = http::name(marks.status);
  co_await client.answer(head, result.body);
}

std::string operation_url(const OperationId& id) {
  return "/.well-known/einmal/operations/" + id.text();
}

}  // namespace einmal::gateway
