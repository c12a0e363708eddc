#include "einmal/probe/tls.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <utility>

namespace einmal::probe {

using SteadyClock = std::chrono::steady_clock;

namespace {

struct Free {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

bool is_address(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

bool expect_name(SSL* ssl, const std::string& host) {
  auto* parameters = SSL_get0_param(ssl);
  if (is_address(host)) return X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str()) == 1;
  return SSL_set_tlsext_host_name(ssl, host.c_str()) == 1 && SSL_set1_host(ssl, host.c_str()) == 1;
}

}  // namespace

/// OpenSSL between two buffers in memory: the socket is ours alone, so that a peer that is gone
/// raises no signal and every wait has its limit.
struct TlsSession::Impl {
  explicit Impl(Socket& over) : socket(over) {}

  Socket& socket;
  std::unique_ptr<SSL_CTX, Free> context;
  std::unique_ptr<SSL, Free> ssl;

  bool flush(Milliseconds wait) {
    std::array<char, 16384> piece{};
    int size = 0;
    while ((size = BIO_read(SSL_get_wbio(ssl.get()), piece.data(), piece.size())) > 0) {
      if (!socket.write({piece.data(), static_cast<std::size_t>(size)}, wait)) return false;
    }
    return true;
  }
  /// More bytes for OpenSSL. What came instead, when none did.
  Incoming::Kind fill(Milliseconds wait, std::size_t limit) {
    const auto next = socket.read_some(wait, limit);
    if (next.kind == Incoming::Kind::data)
      BIO_write(SSL_get_rbio(ssl.get()), next.bytes.data(), static_cast<int>(next.bytes.size()));
    return next.kind;
  }
  /// Repeats `step` (an OpenSSL call) as long as it only lacks input. Its result, and why there is
  /// none.
  template <class Step>
  std::pair<int, Incoming::Kind> drive(Step step, Milliseconds wait, std::size_t limit = 65536) {
    const auto end = SteadyClock::now() + wait;
    while (true) {
      ERR_clear_error();
      const int result = step(ssl.get());
      const int why = SSL_get_error(ssl.get(), result);
      if (!flush(wait)) return {-1, Incoming::Kind::reset};
      if (result > 0) return {result, Incoming::Kind::data};
      if (why == SSL_ERROR_ZERO_RETURN) return {0, Incoming::Kind::end};
      if (why != SSL_ERROR_WANT_READ) return {-1, Incoming::Kind::reset};
      const auto left = std::chrono::duration_cast<Milliseconds>(end - SteadyClock::now());
      const auto kind = fill(std::max(left, Milliseconds(0)), limit);
      if (kind == Incoming::Kind::timeout) return {-1, kind};
      if (kind != Incoming::Kind::data) return {-1, Incoming::Kind::reset};
    }
  }
};

TlsSession::TlsSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsSession::~TlsSession() = default;

Result<std::unique_ptr<TlsSession>> TlsSession::connect(Socket& socket, const std::string& host,
                                                        const TlsChoice& choice,
                                                        Milliseconds wait) {
  auto impl = std::make_unique<Impl>(socket);
  impl->context.reset(SSL_CTX_new(TLS_client_method()));
  auto* context = impl->context.get();
  if (!choice.ca.empty()) {
    if (SSL_CTX_load_verify_file(context, choice.ca.c_str()) != 1)
      return failure(ErrorCode::invalid, "--ca: " + choice.ca + " holds no certificates");
  } else {
    SSL_CTX_set_default_verify_paths(context);
  }
  SSL_CTX_set_verify(context, choice.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  impl->ssl.reset(SSL_new(context));
  auto* ssl = impl->ssl.get();
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  if (!expect_name(ssl, host))
    return failure(ErrorCode::invalid, "--target: not a name that a certificate can carry");
  const auto [done, why] = impl->drive([](SSL* session) { return SSL_connect(session); }, wait);
  if (done > 0) return std::unique_ptr<TlsSession>(new TlsSession(std::move(impl)));
  const auto verified = SSL_get_verify_result(ssl);
  if (!choice.insecure && verified != X509_V_OK)
    return failure(ErrorCode::unavailable, std::string("certificate: ") +
                                               X509_verify_cert_error_string(verified) +
                                               "; --ca names whom to trust");
  return failure(ErrorCode::unavailable, why == Incoming::Kind::timeout
                                             ? "TLS: no handshake in time"
                                             : "TLS: the handshake failed");
}

bool TlsSession::write(std::string_view bytes, Milliseconds wait) {
  if (bytes.empty()) return true;
  const auto step = [bytes](SSL* ssl) {
    return SSL_write(ssl, bytes.data(), static_cast<int>(bytes.size()));
  };
  return impl_->drive(step, wait).first > 0;
}

Incoming TlsSession::read_some(Milliseconds wait, std::size_t limit) {
  std::string bytes(limit, '\0');
  const auto step = [&bytes](SSL* ssl) {
    return SSL_read(ssl, bytes.data(), static_cast<int>(bytes.size()));
  };
  const auto [size, kind] = impl_->drive(step, wait, limit);
  if (kind != Incoming::Kind::data) return {kind, {}};
  bytes.resize(static_cast<std::size_t>(size));
  return {kind, std::move(bytes)};
}

bool TlsSession::is_readable(Milliseconds wait) {
  char byte = 0;
  const auto step = [&byte](SSL* ssl) { return SSL_peek(ssl, &byte, 1); };
  return impl_->drive(step, wait).second != Incoming::Kind::timeout;
}

void TlsSession::half_close() {
  SSL_shutdown(impl_->ssl.get());
  impl_->flush(Milliseconds(1000));
}

}  // namespace einmal::probe
