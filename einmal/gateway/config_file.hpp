#pragma once

#include <string>
#include <string_view>

#include "einmal/base/error.hpp"
#include "einmal/gateway/config.hpp"

namespace einmal {

/// Reads a configuration from TOML and checks it. What comes out is complete and safe to run: every
/// bound is kept, no two operations match the same request, no combination contradicts another.
/// Errors: invalid; the message has one line `file:line: what, and what to do` for each thing that
/// is wrong, in the order of the file.
Result<GatewayConfig> parse_config(std::string_view toml, const std::string& file);

/// The same from a file. Errors: also invalid when it cannot be read.
Result<GatewayConfig> read_config(const std::string& path);

/// "HOST:PORT"; the host may be an IPv6 address in brackets. Errors: invalid.
Result<HostPort> parse_host_port(std::string_view text);

/// "http://HOST[:PORT]" or "https://HOST[:PORT]", without path. Errors: invalid.
Result<UpstreamAddress> parse_upstream(std::string_view url);

/// "header:NAME", "fixed:NAME", "jwt:CLAIM", "mtls", "mtls:KIND", "auth-request:URL", into
/// `caller`, whose other members stay. Errors: invalid.
Result<void> parse_caller(std::string_view spec, CallerConfig& caller);

/// A whole number and its unit: us, ms, s, m, h, d. Errors: invalid, also without a unit.
Result<Duration> parse_duration(std::string_view text);

/// A whole number of bytes and its unit: B, KiB, MiB, GiB. Errors: invalid, also without a unit.
Result<std::size_t> parse_size(std::string_view text);

/// What `parse_config` checks beyond the text: bounds and combinations, for configurations made in
/// other ways. Errors: invalid, one line for each thing.
Result<void> check_config(const GatewayConfig& config);

}  // namespace einmal
