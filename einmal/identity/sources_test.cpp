#include "einmal/identity/sources.hpp"

#include <gtest/gtest.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "einmal/base/bytes.hpp"

namespace einmal::identity {
namespace {

/// A self-made certificate in DER with the given common names and SAN (OpenSSL's syntax).
std::string certificate(const char* issuer, const char* subject, const char* san) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* x = X509_new();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), 0);
  X509_gmtime_adj(X509_getm_notAfter(x), 3600);
  X509_set_pubkey(x, key);
  const auto set = [](X509_NAME* name, const char* text) {
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(text), -1, -1, 0);
  };
  set(X509_get_issuer_name(x), issuer);
  if (subject) set(X509_get_subject_name(x), subject);
  if (san) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, san);
    X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(x, key, EVP_sha256());
  unsigned char* der = nullptr;
  const int size = i2d_X509(x, &der);
  std::string bytes(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  X509_free(x);
  EVP_PKEY_free(key);
  return bytes;
}

Verdict ask(CallerSource& source, std::string der) {
  Peer peer;
  peer.certificate = std::move(der);
  return source.identify({}, peer);
}

TEST(CertificateSource, NamesTheAccountByIssuerAndSubject) {
  const auto source = certificate_source("subject");
  const auto alice = std::get<Caller>(ask(**source, certificate("CA 1", "alice", nullptr)));
  EXPECT_EQ(alice.account,
            std::get<Caller>(ask(**source, certificate("CA 1", "alice", nullptr))).account)
      << "a renewed certificate is the same caller";
  EXPECT_NE(alice.account,
            std::get<Caller>(ask(**source, certificate("CA 2", "alice", nullptr))).account);
  EXPECT_NE(alice.account,
            std::get<Caller>(ask(**source, certificate("CA 1", "bob", nullptr))).account);
}

TEST(CertificateSource, TakesOneAlternativeNameAndNoAmbiguity) {
  const auto source = certificate_source("san:dns");
  EXPECT_TRUE(std::holds_alternative<Caller>(
      ask(**source, certificate("CA", "x", "DNS:a.example,URI:urn:x"))));
  EXPECT_TRUE(std::holds_alternative<NoCaller>(
      ask(**source, certificate("CA", "x", "DNS:a.example,DNS:b.example"))));
  EXPECT_TRUE(std::holds_alternative<NoCaller>(ask(**source, certificate("CA", "x", "URI:urn:x"))));
  EXPECT_TRUE(std::holds_alternative<NoCaller>(ask(**source, certificate("CA", "x", nullptr))));
}

TEST(CertificateSource, WithoutACertificateItIs403) {
  const auto source = certificate_source("subject");
  EXPECT_EQ(std::get<NoCaller>(ask(**source, "")).status, 403);
  EXPECT_EQ(std::get<NoCaller>(ask(**source, "garbage")).status, 403);
  EXPECT_FALSE(certificate_source("fingerprint").has_value());
}

http::ResponseHead answer(int status, http::HeaderLines headers) {
  http::ResponseHead head;
  head.status = status;
  head.headers = std::move(headers);
  return head;
}

TEST(AuthRequestSource, AsksFirstAndTakesTheCallerFromTheAnswer) {
  const auto source = auth_request_source("http://127.0.0.1:9/auth", "X-Account");
  EXPECT_EQ(std::get<AskFirst>((*source)->identify({}, {})).url, "http://127.0.0.1:9/auth");
  http::HeaderLines named;
  named.add("x-account", "alice");
  EXPECT_EQ(std::get<Caller>((*source)->judge(answer(204, named))).account, "alice");
}

TEST(AuthRequestSource, PassesRefusalsOnAndGuessesNothing) {
  const auto source = auth_request_source("http://127.0.0.1:9/auth", "X-Account");
  http::HeaderLines challenge;
  challenge.add("WWW-Authenticate", "Bearer realm=\"x\"");
  const auto refused = std::get<NoCaller>((*source)->judge(answer(401, challenge)));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.challenge, "Bearer realm=\"x\"");
  EXPECT_EQ(std::get<NoCaller>((*source)->judge(answer(403, {}))).status, 403);
  http::HeaderLines two;
  two.add("X-Account", "alice");
  two.add("X-Account", "bob");
  for (const auto& unclear :
       {answer(200, {}), answer(200, two), answer(302, {}), answer(404, {}), answer(500, {})}) {
    EXPECT_TRUE(std::holds_alternative<CannotTell>((*source)->judge(unclear))) << unclear.status;
  }
}

TEST(AuthRequestSource, RefusesWhatIsNoUrlOrFieldName) {
  EXPECT_FALSE(auth_request_source("auth.example", "X-Account").has_value());
  EXPECT_FALSE(auth_request_source("http://a/", "X Account").has_value());
}

class MappedSourceTest : public testing::Test {
 protected:
  MappedSourceTest() : path_(testing::TempDir() + "map-" + std::to_string(::getpid())) {}
  ~MappedSourceTest() override { std::filesystem::remove(path_); }

  static std::string line(const std::string& credential, const std::string& account) {
    std::array<unsigned char, 32> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(credential.data()), credential.size(),
           digest.data());
    return "sha256:" + to_hex({reinterpret_cast<char*>(digest.data()), digest.size()}) + " " +
           account + "\n";
  }
  Result<std::unique_ptr<CallerSource>> open(const std::string& text) {
    std::ofstream(path_) << text;
    return mapped_source("X-Api-Key", path_);
  }
  static Verdict ask(CallerSource& source, std::vector<std::string> keys) {
    http::RequestHead head;
    for (auto& key : keys) head.headers.add("x-api-key", key);
    return source.identify(head, {});
  }
  std::string path_;
};

TEST_F(MappedSourceTest, ARotatedCredentialIsTheSameCaller) {
  const auto source =
      open("# keys\n\n" + line("old", "acme") + line("new", "acme") + line("other", "ben & co"));
  ASSERT_TRUE(source.has_value()) << source.error().message;
  EXPECT_EQ(std::get<Caller>(ask(**source, {"old"})).account, "acme");
  EXPECT_EQ(std::get<Caller>(ask(**source, {"new"})).account, "acme");
  EXPECT_EQ(std::get<Caller>(ask(**source, {"other"})).account, "ben & co");
}

TEST_F(MappedSourceTest, UnknownMissingAndDoubledCredentialsAre401) {
  const auto source = open(line("old", "acme"));
  EXPECT_EQ(std::get<NoCaller>(ask(**source, {"guess"})).status, 401);
  EXPECT_EQ(std::get<NoCaller>(ask(**source, {})).status, 401);
  EXPECT_EQ(std::get<NoCaller>(ask(**source, {"old", "old"})).status, 401);
}

TEST_F(MappedSourceTest, ABadLineIsNamed) {
  for (const std::string& bad : std::vector<std::string>{
           "secret acme\n", "sha256:abc acme\n", "sha256:" + std::string(64, 'a') + "\n",
           "sha256:" + std::string(64, 'a') + " \n"}) {
    const auto source = open(line("good", "acme") + bad);
    ASSERT_FALSE(source.has_value()) << bad;
    EXPECT_NE(source.error().message.find(path_ + ":2"), std::string::npos)
        << source.error().message;
  }
  EXPECT_FALSE(open(line("twice", "a") + line("twice", "b")).has_value());
  EXPECT_FALSE(open("").has_value());
}

}  // namespace
}  // namespace einmal::identity
