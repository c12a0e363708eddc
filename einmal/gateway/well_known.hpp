#pragma once

#include <string_view>

#include "einmal/gateway/client_connection.hpp"

namespace einmal::gateway {

/// Whether einmal itself answers this path: operation resources and discovery.
bool is_well_known(std::string_view canonical_path);
Async<> answer_well_known(ClientConnection& client);

}  // namespace einmal::gateway
