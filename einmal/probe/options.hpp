#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "einmal/base/error.hpp"
#include "einmal/http/head.hpp"
#include "einmal/probe/socket.hpp"
#include "einmal/probe/tls.hpp"

/// What the probe is told about the API under test. Every time is in milliseconds.

namespace einmal::probe {

/// http://HOST:PORT/BASE or https://..., taken apart.
struct Target {
  bool tls = false;
  std::string host;
  std::uint16_t port = 80;
  std::string base;  ///< Path put before every target; empty or without a slash at its end.

  /// HOST:PORT, without the port where it is the scheme's own.
  std::string authority() const;
  /// Scheme and authority.
  std::string origin() const;
};
/// Errors: invalid (another scheme, no host, bad port).
Result<Target> parse_target(std::string_view url);

/// "METHOD /path", as --request and its kin are written.
struct Operation {
  std::string method, path;
};
/// Errors: invalid.
Result<Operation> parse_operation(std::string_view text);
/// "Name: value". Errors: invalid.
Result<std::pair<std::string, std::string>> parse_header(std::string_view text);

struct Options {
  Target target;
  TlsChoice tls;  ///< For a target with TLS.
  Operation request;
  std::string body;
  http::HeaderLines headers;
  std::string key_header = "Idempotency-Key";

  /// How effects are counted, outside the answers: a request and a JSON pointer to a number.
  std::optional<Operation> effects;
  std::string effects_pointer = "/count";

  /// What some scenarios need; without it they are not judged.
  std::optional<std::pair<std::string, std::string>> other_caller;  ///< Header of another caller.
  std::optional<Operation> other_request;
  std::optional<std::string> other_body;    ///< Of other_request; else the same body.
  std::optional<std::string> failing_body;  ///< Refused by a business rule, such as a bad card.
  std::optional<std::string> changed_body;  ///< Accepted, but another request; else made up.
  std::optional<std::pair<std::string, std::string>> slow_header;   ///< Makes the work slow.
  std::optional<std::pair<std::string, std::string>> fault_header;  ///< Makes its outcome unknown.
  std::optional<Operation> mutate;  ///< May hold {/pointer} into the first answer's JSON.
  std::optional<std::string> mutate_body;
  std::optional<Milliseconds> retention;
  std::optional<std::string> crash_command, start_command;

  bool yes_this_host = false;  ///< The target may be another machine.
  std::vector<std::string> only, skip;

  /// Bounds.
  std::size_t concurrency = 16;     ///< Requests at once, at most 64.
  std::size_t max_requests = 1000;  ///< Sent in all; what is left then is not judged.
  Milliseconds pace{10};            ///< Pause before each request that is not part of a burst.
  Milliseconds timeout{10'000};     ///< For one answer.
  Milliseconds patience{15'000};    ///< For a key to be decided, with repeats.
  Milliseconds settle{200};         ///< How long the counter is watched for late effects.
};

}  // namespace einmal::probe
