#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "einmal/base/error.hpp"

namespace einmal::client {

/// The operation resource that `Location: location` names in the answer to a request for
/// `request_url`, as an absolute URL. Nothing unless it is one of einmal's at the same origin:
/// credentials go nowhere else.
std::optional<std::string> operation_url(std::string_view request_url, std::string_view location);

/// Where the server of `request_url` publishes its contract.
std::string discovery_url(std::string_view request_url);

/// The path of a URL, at least "/".
std::string path_of(std::string_view url);

/// Whether this is a URL that a request can be sent to: http or https, with a host, without user
/// information or fragment. Errors: invalid.
Result<void> check_url(std::string_view url);

}  // namespace einmal::client
