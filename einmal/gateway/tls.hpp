#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "einmal/gateway/stream.hpp"

/// OpenSSL's side of a TLS stream: contexts from files, and a session's way to its socket. For
/// stream.cpp; nothing else sees OpenSSL.

namespace einmal::gateway {

struct SslDeleter {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslPointer = std::unique_ptr<SSL, SslDeleter>;

/// A session as the accepting (`server`) or the connecting side, which verifies that the peer is
/// `server_name` (a DNS name or a literal address).
SslPointer new_ssl(TlsContext& context, bool server, std::string_view server_name);

/// Lets the session read and write `descriptor`, which it does not own, without ever raising
/// SIGPIPE.
void attach_socket(SSL& ssl, int descriptor);

/// DER of the peer's certificate if it was verified, otherwise empty.
std::string verified_certificate(SSL& ssl);

}  // namespace einmal::gateway
