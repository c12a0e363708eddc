#pragma once

#include <optional>

#include "einmal/gateway/small_answer.hpp"
#include "einmal/gateway/upstream_pool.hpp"
#include "einmal/http/head.hpp"

namespace einmal::gateway {

/// Sends a request without a body on a connection of the pool and reads an answer of at most
/// `body_limit` bytes. Nothing: no connection, no whole readable answer in time, or more than that.
/// Nothing is sent twice, so the question must be one that may be lost.
Async<std::optional<SmallAnswer>> exchange(UpstreamPool& pool, const http::RequestHead& head,
                                           const UpstreamTimes& times, std::size_t body_limit);

}  // namespace einmal::gateway
