#pragma once

#include <string>
#include <string_view>

#include "einmal/gateway/client_connection.hpp"
#include "einmal/http/problem.hpp"

namespace einmal::gateway {

/// Answers with problem details. Ends the connection where the reason says so, or where what is
/// left of the request cannot be read over.
Async<> answer_problem(ClientConnection& client, const http::Problem& problem);

/// How a settled record is answered from.
struct ReplayAs {
  ReplayAs(bool by_resolution, std::string_view applied, bool from_operation)
      : resolved(by_resolution), preference(applied), as_operation_result(from_operation) {}

  bool resolved;                ///< An operator or reconciler gave the result.
  std::string_view preference;  ///< Named in Preference-Applied.
  bool as_operation_result;     ///< By the operation resource: without lines about caching.
};

/// Answers from a settled record: status, stored lines, marks, body. A result without its body is
/// `result-not-kept`; one in a coding that the client does not accept is decoded, or
/// `not-acceptable`. `request`: the head lines of the request that is answered.
Async<> answer_replay(ClientConnection& client, const http::HeaderLines& request,
                      const Record& record, const ReplayAs& as);

/// When to ask again about an unknown outcome: soon where a reconciler works on it; nothing where a
/// person must.
std::optional<Duration> retry_after_uncertain(const OperationConfig& config);

/// URL of an operation's resource at this gateway.
std::string operation_url(const OperationId& id);

}  // namespace einmal::gateway
