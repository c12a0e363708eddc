#pragma once

#include "einmal/gateway/client_connection.hpp"
#include "einmal/gateway/upstream_pool.hpp"

namespace einmal::gateway {

/// After a switch of protocols: bytes both ways, whatever they are, until both directions ended or
/// one side broke. An end in one direction is passed on and leaves the other open.
Async<> tunnel(ClientConnection& client, UpstreamConnection& upstream);

}  // namespace einmal::gateway
