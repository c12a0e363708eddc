#include "einmal/testing/certificate.hpp"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>

namespace einmal::test {

SelfSigned make_certificate(const std::string& directory, const std::string& name,
                            const std::string& san) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, subject);
  X509_EXTENSION* alternative =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, san.c_str());
  X509_add_ext(certificate, alternative, -1);
  X509_EXTENSION_free(alternative);
  X509_sign(certificate, key, EVP_sha256());
  SelfSigned made{directory + "/" + name + ".pem", directory + "/" + name + ".key"};
  FILE* file = std::fopen(made.certificate.c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
  file = std::fopen(made.key.c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return made;
}

}  // namespace einmal::test
