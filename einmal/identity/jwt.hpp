#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/identity/caller.hpp"
#include "einmal/identity/jws.hpp"

namespace einmal::identity {

struct JwtOptions {
  std::string claim = "sub";                   ///< Names the account: a string or an integer.
  std::string keys;                            ///< JWK set or PEM file; read again when it changes.
  std::vector<std::string> algorithms;         ///< RS256 ES256 EdDSA HS256; empty: see verify_jws.
  std::optional<std::string> issuer;           ///< `iss` must be this.
  std::vector<std::string> audiences;          ///< `aud` must name one of them; empty: not judged.
  std::map<std::string, std::string> require;  ///< Claims that must have, or list, this value.
  Duration leeway = std::chrono::seconds(30);  ///< On exp and nbf.
};

/// `jwt:CLAIM`: a bearer token (RFC 6750) that is a signed JWT (RFC 7519). The caller is (issuer,
/// claim), so that a token refresh is the same caller and two issuers never share an account.
/// Judges signature, `exp` (required), `nbf`, `iss`, `aud`, `require`. A key file that becomes
/// unreadable or wrong later leaves the keys as they were. `clock` must outlive the source.
/// Errors: invalid, naming the file or option.
Result<std::unique_ptr<CallerSource>> jwt_source(const JwtOptions& options, const Clock& clock);

}  // namespace einmal::identity
