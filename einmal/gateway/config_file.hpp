#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "einmal/base/error.hpp"
#include "einmal/gateway/config.hpp"

namespace einmal {

/// Where the values of a configuration were set. Paths are "gateway.listen", "defaults.lease",
/// "operation.0.lease" (by position), and the tables themselves: "gateway", "operation.0".
struct ConfigOrigins {
  std::string file;
  std::map<std::string, int> lines;

  bool has(const std::string& path) const { return lines.count(path) != 0; }
};

/// A configuration with where it came from.
struct ReadConfig {
  GatewayConfig config;
  ConfigOrigins origins;
};

/// Reads a configuration from TOML and checks it. What comes out is complete and safe to run: every
/// bound is kept, no two operations match the same request, no combination contradicts another.
/// Errors: invalid; the message has one line `file:line: what, and what to do` for each thing that
/// is wrong, in the order of the file.
Result<ReadConfig> parse_config_with_origins(std::string_view toml, const std::string& file);
Result<GatewayConfig> parse_config(std::string_view toml, const std::string& file);

/// The same from a file. Errors: also invalid when it cannot be read.
Result<ReadConfig> read_config_with_origins(const std::string& path);
Result<GatewayConfig> read_config(const std::string& path);

/// What `parse_config` checks beyond the text: bounds and combinations, for configurations made in
/// other ways. Errors: invalid, one line for each thing.
Result<void> check_config(const GatewayConfig& config);

/// Every value in effect and where it came from, table by table, then operation by operation with
/// its status table (`--explain`). For configurations made in other ways `origins` stays empty.
/// Holds no password.
std::string explain_config(const GatewayConfig& config, const ConfigOrigins& origins);

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

/// An answer to a reconciliation request that means something: a status, and maybe what stands at
/// a place of its JSON body.
struct ReconcileCondition {
  int status = 0;
  std::optional<std::string> pointer;  ///< RFC 6901
  std::string json;                    ///< With a pointer: the JSON text that stands there.
  friend bool operator==(const ReconcileCondition&, const ReconcileCondition&) = default;
};
/// "404", or "200 /status = \"paid\"". Errors: invalid.
Result<ReconcileCondition> parse_reconcile_condition(std::string_view text);

}  // namespace einmal
