#pragma once

#include <memory>
#include <variant>

#include "einmal/gateway/core.hpp"
#include "einmal/gateway/keyed_request.hpp"
#include "einmal/gateway/upstream_pool.hpp"
#include "einmal/http/problem.hpp"
#include "einmal/http/replay_headers.hpp"

namespace einmal::gateway {

/// The upstream's answer, to be passed on: its outcome is durable, or `marks` say that it is not.
struct UpstreamAnswer {
  http::ResponseHead head;  ///< Without hop-by-hop and framing lines.
  Bytes body;
  std::optional<http::Marks> marks;
  /// The record is settled without the body: the rest of it is still to be read here, and a break
  /// is an error of this transmission only.
  UpstreamHandle rest;
  std::unique_ptr<Budget::Share> memory;  ///< What `body` takes.
};

/// How an execution ended: an answer of the upstream's or of our own, or, where ownership was lost,
/// what any duplicate is answered.
using Executed = std::variant<UpstreamAnswer, http::Problem, Begun>;

/// Forwards an owned request, at most once, and makes its outcome durable. Runs to its end whatever
/// becomes of the client. After `answer_timeout` it ends as uncertain, and the connection is read
/// on beside everything else: a whole answer still settles the record.
/// `execution` null: the store failed and the operation chose to go on unprotected.
Async<Executed> execute(Core& core, std::shared_ptr<const KeyedRequest> request,
                        std::unique_ptr<Execution> execution);

}  // namespace einmal::gateway
