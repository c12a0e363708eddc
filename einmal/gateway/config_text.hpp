#pragma once

#include <map>
#include <string>
#include <vector>

#include "einmal/gateway/config.hpp"

/// Values as they would stand in a configuration file: the inverse of the parse_ functions of
/// config_file.hpp.

namespace einmal::gateway {

std::string show(Duration duration);
std::string show_size(std::size_t bytes);
std::string show(const HostPort& address);
std::string show(const UpstreamAddress& upstream);
std::string show(const CallerConfig& caller);  ///< The source alone.
/// In quotation marks.
std::string show(const std::string& text);
std::string show(const std::vector<std::string>& texts);
std::string show(const std::map<std::string, std::string>& texts);
/// A store URL without its password.
std::string show_store_url(const std::string& url);

}  // namespace einmal::gateway
