#pragma once

#include "einmal/core/record.hpp"
#include "einmal/gateway/client_connection.hpp"

namespace einmal::gateway {

/// `POST /.well-known/einmal/operations/{id}/outcome`: whoever holds a token, the upstream or the
/// receiver of its webhooks, says what became of an operation whose outcome is unknown. Settled by
/// compare-and-set on the generation in the report, or on the one that was looked at. Says it only
/// of uncertain records: an owner that still runs reports by itself. Never frees a key.
///
///     {"state": "completed" | "failed", "status": 201, "headers": {"Location": "/orders/1"},
///      "body": "text", "generation": 17, "evidence": "webhook evt_1"}
///
/// Answers: 200 with the operation resource, the same report again too; 400, 401, 404, 409.
Async<> report_outcome(ClientConnection& client, OperationId id);

}  // namespace einmal::gateway
