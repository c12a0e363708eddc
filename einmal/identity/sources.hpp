#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "einmal/identity/caller.hpp"

namespace einmal::identity {

/// `mtls`: the account is (issuer, name) of the client certificate that the TLS layer verified;
/// `names` is subject, san:dns, san:uri or san:email. A certificate with none or several of the
/// kind names nobody. Errors: invalid.
Result<std::unique_ptr<CallerSource>> certificate_source(std::string_view names);

/// `auth-request:URL`: asks there with the request's credentials. 2xx lets in, and the answer's
/// line `answer_header` names the caller; 401 and 403 are passed on with their challenge; anything
/// else, and a 2xx that names nobody or two, cannot tell. Errors: invalid.
Result<std::unique_ptr<CallerSource>> auth_request_source(std::string_view url,
                                                          std::string_view answer_header);

/// `header:NAME` with `map`: NAME carries a credential that the file translates to an account, so
/// that a rotated credential is the same caller. A line of the file is
/// `sha256:<64 hex digits of the credential's SHA-256> <account>`; empty lines and lines that begin
/// with # are skipped. Errors: invalid, with file and line.
Result<std::unique_ptr<CallerSource>> mapped_source(std::string_view name, const std::string& file);

}  // namespace einmal::identity
