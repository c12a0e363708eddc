#include "einmal/gateway/tls.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <cerrno>

namespace einmal::gateway {

class TlsContext {
 public:
  struct Deleter {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  explicit TlsContext(bool server, TlsVersion minimum, bool verifies)
      : context(SSL_CTX_new(server ? TLS_server_method() : TLS_client_method())),
        verifies_peer(verifies) {
    SSL_CTX_set_min_proto_version(context.get(),
                                  minimum == TlsVersion::tls13 ? TLS1_3_VERSION : TLS1_2_VERSION);
    SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  }

  std::unique_ptr<SSL_CTX, Deleter> context;
  bool verifies_peer;
};

namespace {

/// OpenSSL's own socket BIO writes with write(2) and so may raise SIGPIPE.
int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  const auto sent = ::send(fd, data, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  const auto got = ::recv(fd, data, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(got);
}

long bio_control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "einmal socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

std::string openssl_reason() {
  const auto error = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(error);
  ERR_clear_error();
  return reason != nullptr ? reason : "unreadable";
}

/// Only http/1.1 is spoken; a client that offers others alone is answered without ALPN.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char ours[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, ours, sizeof ours - 1, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Result<void> load_identity(SSL_CTX* context, const std::string& option,
                           const std::string& certificate, const std::string& key) {
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return failure(ErrorCode::invalid, option + ".certificate = \"" + certificate +
                                           "\": no PEM certificate chain (" + openssl_reason() +
                                           ")");
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return failure(ErrorCode::invalid, option + ".key = \"" + key +
                                           "\": no PEM key, or not that of the certificate (" +
                                           openssl_reason() + ")");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<TlsContext>> server_tls(const ServerTls& config) {
  auto tls = std::make_shared<TlsContext>(true, config.minimum, config.client_ca.has_value());
  SSL_CTX* context = tls->context.get();
  auto loaded = load_identity(context, "tls", config.certificate, config.key);
  if (!loaded) return pass_on(loaded);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  static constexpr unsigned char session_context[] = "einmal";
  SSL_CTX_set_session_id_context(context, session_context, sizeof session_context - 1);
  if (config.client_ca) {
    if (SSL_CTX_load_verify_locations(context, config.client_ca->c_str(), nullptr) != 1) {
      return failure(ErrorCode::invalid, "tls.client_ca = \"" + *config.client_ca +
                                             "\": no PEM certificates (" + openssl_reason() + ")");
    }
    SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(config.client_ca->c_str()));
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  }
  return tls;
}

Result<std::shared_ptr<TlsContext>> client_tls(const ClientTls& config) {
  auto tls = std::make_shared<TlsContext>(false, config.minimum, config.verify);
  SSL_CTX* context = tls->context.get();
  if (config.certificate && config.key) {
    auto loaded = load_identity(context, "upstream_tls", *config.certificate, *config.key);
    if (!loaded) return pass_on(loaded);
  }
  if (!config.verify) return tls;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  const bool found = config.ca
                         ? SSL_CTX_load_verify_locations(context, config.ca->c_str(), nullptr) == 1
                         : SSL_CTX_set_default_verify_paths(context) == 1;
  if (!found) {
    return failure(ErrorCode::invalid, "upstream_tls.ca = \"" + config.ca.value_or("system") +
                                           "\": no PEM certificates (" + openssl_reason() + ")");
  }
  return tls;
}

SslPointer new_ssl(TlsContext& context, bool server, std::string_view server_name) {
  SslPointer ssl(SSL_new(context.context.get()));
  if (server) {
    SSL_set_accept_state(ssl.get());
    return ssl;
  }
  SSL_set_connect_state(ssl.get());
  const std::string name(server_name);
  X509_VERIFY_PARAM* verify = SSL_get0_param(ssl.get());
  const bool literal = X509_VERIFY_PARAM_set1_ip_asc(verify, name.c_str()) == 1;
  if (!literal) {
    SSL_set_tlsext_host_name(ssl.get(), name.c_str());
    if (context.verifies_peer) SSL_set1_host(ssl.get(), name.c_str());
  }
  static constexpr unsigned char ours[] = "\x08http/1.1";
  SSL_set_alpn_protos(ssl.get(), ours, sizeof ours - 1);
  return ssl;
}

void attach_socket(SSL& ssl, int descriptor) {
  BIO* bio = BIO_new(socket_method());
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)));
  BIO_set_init(bio, 1);
  SSL_set_bio(&ssl, bio, bio);
}

std::string verified_certificate(SSL& ssl) {
  if (SSL_get_verify_result(&ssl) != X509_V_OK) return {};
  X509* certificate = SSL_get0_peer_certificate(&ssl);
  if (certificate == nullptr) return {};
  const int size = i2d_X509(certificate, nullptr);
  if (size <= 0) return {};
  std::string der(static_cast<std::size_t>(size), '\0');
  auto* out = reinterpret_cast<unsigned char*>(der.data());
  i2d_X509(certificate, &out);
  return der;
}

}  // namespace einmal::gateway
