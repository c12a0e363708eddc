#pragma once

#include <optional>
#include <string>

#include "einmal/base/bytes.hpp"
#include "einmal/http/head.hpp"

namespace einmal::client {

/// One logical request. Everything but `credentials` is kept in the journal and sent unchanged at
/// every attempt.
struct Request {
  std::string method = "POST";
  std::string url;  ///< http or https, absolute.
  http::HeaderLines headers;
  Bytes body;
  /// Sent with every attempt and poll, never stored: Authorization and its kin, which may be others
  /// in a later run.
  http::HeaderLines credentials;
  /// The application's own key. Nothing: the key header among `headers` if there is one, else a
  /// new UUID (version 4) is drawn for a new intent.
  std::optional<std::string> key;
};

/// A whole answer.
struct Answer {
  int status = 0;
  http::HeaderLines headers;
  Bytes body;
  bool body_cut = false;  ///< The body was longer than the limit; it is not here.
};

/// How the key stands in its header.
enum class KeyStyle : std::uint8_t {
  bare,    ///< `Idempotency-Key: 8e03...`, as most APIs take it.
  quoted,  ///< `Idempotency-Key: "8e03..."`, an RFC 8941 String as the IETF draft has it.
};

}  // namespace einmal::client
