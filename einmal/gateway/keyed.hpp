#pragma once

#include "einmal/gateway/client_connection.hpp"

namespace einmal::gateway {

/// Answers a request that matched an operation, keyed or not.
Async<> answer_matched(ClientConnection& client, const Matched& matched);

/// Answers a request that matched none: proxied untouched; counted or refused if it carries a key.
Async<> answer_unmatched(ClientConnection& client);

}  // namespace einmal::gateway
