#pragma once

#include "einmal/gateway/client_connection.hpp"
#include "einmal/store/store.hpp"

namespace einmal::gateway {

/// 200 with an operation as JSON: id, state, operation, created, settled, expires, attempts; with
/// Retry-After while it is not final.
Async<> answer_operation(ClientConnection& client, const StoredRecord& stored);

}  // namespace einmal::gateway
