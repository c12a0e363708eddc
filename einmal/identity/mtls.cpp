#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <string>

#include "einmal/core/scope.hpp"
#include "einmal/identity/sources.hpp"

namespace einmal::identity {

namespace {

struct FreeCertificate {
  void operator()(X509* p) const { X509_free(p); }
};
struct FreeNames {
  void operator()(GENERAL_NAMES* p) const { GENERAL_NAMES_free(p); }
};

/// RFC 4514 text of a distinguished name.
std::string text_of(const X509_NAME* name) {
  BIO* bio = BIO_new(BIO_s_mem());
  X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  std::string text(bytes, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

/// The one subject alternative name of that kind; empty if there is none, several, or one with a
/// NUL in it.
std::string only_name(X509* certificate, int kind) {
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string found;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != kind) continue;
    if (!found.empty()) return {};
    const ASN1_IA5STRING* text = name->d.ia5;
    found.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                 static_cast<std::size_t>(ASN1_STRING_length(text)));
  }
  return found.find('\0') == std::string::npos ? found : std::string();
}

class CertificateSource final : public CallerSource {
 public:
  explicit CertificateSource(int san_kind) : san_kind_(san_kind) {}

  Verdict identify(const http::RequestHead&, const Peer& peer) override {
    if (peer.certificate.empty()) return refuse("the connection has no client certificate");
    const auto* at = reinterpret_cast<const unsigned char*>(peer.certificate.data());
    const std::unique_ptr<X509, FreeCertificate> certificate(
        d2i_X509(nullptr, &at, static_cast<long>(peer.certificate.size())));
    ERR_clear_error();
    if (!certificate) return refuse("the client certificate cannot be read");
    const std::string name = san_kind_ < 0 ? text_of(X509_get_subject_name(certificate.get()))
                                           : only_name(certificate.get(), san_kind_);
    if (name.empty()) return refuse("the client certificate does not name one account");
    const std::string issuer = text_of(X509_get_issuer_name(certificate.get()));
    std::string caller = std::to_string(issuer.size()) + ":" + issuer + ":" + name;
    if (caller.size() > max_scope_part_bytes) return refuse("the certificate's names are too long");
    return Caller{std::move(caller)};
  }

 private:
  static NoCaller refuse(const char* why) { return NoCaller{403, {}, why}; }
  int san_kind_;
};

}  // namespace

Result<std::unique_ptr<CallerSource>> certificate_source(std::string_view names) {
  struct Kind {
    std::string_view name;
    int san;
  };
  static constexpr std::array<Kind, 4> kinds{
      {{"subject", -1}, {"san:dns", GEN_DNS}, {"san:uri", GEN_URI}, {"san:email", GEN_EMAIL}}};
  for (const auto& kind : kinds) {
    if (names == kind.name)
      return std::unique_ptr<CallerSource>(std::make_unique<CertificateSource>(kind.san));
  }
  return failure(ErrorCode::invalid, "caller source mtls: \"" + std::string(names) +
                                         "\" is not one of subject, san:dns, san:uri, san:email");
}

}  // namespace einmal::identity
