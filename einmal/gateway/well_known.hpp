#pragma once

#include <string_view>

#include "einmal/gateway/client_connection.hpp"

namespace einmal::gateway {

/// Whether einmal itself answers this path: operation resources and, unless it is off, discovery.
bool is_well_known(const Settings& settings, std::string_view canonical_path);
Async<> answer_well_known(ClientConnection& client);

}  // namespace einmal::gateway
