#pragma once

#include <optional>
#include <string>
#include <variant>

#include "einmal/gateway/client_connection.hpp"
#include "einmal/http/problem.hpp"

namespace einmal::gateway {

/// Who asks: an account, or how the request is refused. Asks the caller service where the source
/// wants that.
using Identified = std::variant<std::string, http::Problem>;
Async<Identified> identify(ClientConnection& client, const UpstreamTimes& times);

/// Whether `service` lets this request in now; otherwise how it is refused.
Async<std::optional<http::Problem>> ask_permission(ClientConnection& client, AskedService& service,
                                                   const UpstreamTimes& times);

}  // namespace einmal::gateway
