#include "einmal/gateway/identify.hpp"

namespace einmal::gateway {

using http::Problem;
using http::Reason;

Async<Identified> identify(ClientConnection& client, const UpstreamTimes& times) {
  const auto& settings = client.settings();
  identity::Verdict verdict = settings.callers->identify(client.request(), client.peer());
  if (std::holds_alternative<identity::AskFirst>(verdict)) {
    const std::optional<http::ResponseHead> answer =
        co_await settings.caller_service->ask(client.request(), times);
    if (answer) {
      verdict = settings.callers->judge(*answer);
    } else {
      verdict = identity::CannotTell{"the caller could not be checked"};
    }
  }
  Identified identified = Problem(Reason::caller_unavailable);
  if (auto* caller = std::get_if<identity::Caller>(&verdict)) {
    identified = std::move(caller->account);
  } else if (const auto* missing = std::get_if<identity::NoCaller>(&verdict)) {
    Problem problem(Reason::caller_missing, missing->detail);
    problem.status = missing->status;
    if (!missing->challenge.empty()) problem.challenge = missing->challenge;
    identified = std::move(problem);
  }
  co_return identified;
}

Async<std::optional<Problem>> ask_permission(ClientConnection& client, AskedService& service,
                                             const UpstreamTimes& times) {
  const std::optional<http::ResponseHead> answer = co_await service.ask(client.request(), times);
  std::optional<Problem> refused;
  if (answer && answer->status / 100 == 2) co_return refused;
  refused = Problem(Reason::caller_unavailable, "the authorisation could not be checked");
  if (answer && (answer->status == 401 || answer->status == 403)) {
    refused = Problem(Reason::caller_missing, "not authorised");
    refused->status = answer->status;
    if (const auto challenge = answer->headers.first("WWW-Authenticate"))
      refused->challenge = std::string(*challenge);
  }
  co_return refused;
}

}  // namespace einmal::gateway
