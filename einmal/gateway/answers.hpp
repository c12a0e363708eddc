#pragma once

#include <string>
#include <string_view>

#include "einmal/gateway/client_connection.hpp"
#include "einmal/http/problem.hpp"

namespace einmal::gateway {

/// Answers with problem details. Ends the connection where the reason says so, or where what is
/// left of the request cannot be read over.
Async<> answer_problem(ClientConnection& client, const http::Problem& problem);

/// Answers from a settled record: status, stored lines, marks, body. A result without its body is
/// `result-not-kept`.
Async<> answer_replay(ClientConnection& client, const Record& record, bool resolved,
                      bool preference_applied);

/// URL of an operation's resource at this gateway.
std::string operation_url(const OperationId& id);

}  // namespace einmal::gateway
