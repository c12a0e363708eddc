#include "einmal/identity/jwt.hpp"

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "einmal/identity/base64url.hpp"
#include "einmal/identity/jws.hpp"

namespace einmal::identity {
namespace {

// RFC 7515 appendices A.1 to A.3 and RFC 8037 appendix A.4.
constexpr const char* rfc_payload =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlf"
    "Q";
constexpr const char* rfc_hs256_keys =
    R"({"keys":[{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}]})";
constexpr const char* rfc_rs256_keys =
    R"({"keys":[{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}]})";
constexpr const char* rfc_es256_keys =
    R"({"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})";

std::string token(const char* header, const char* payload, const char* signature) {
  return std::string(header) + "." + payload + "." + signature;
}
const std::string rfc_hs256 = token("eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9", rfc_payload,
                                    "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
const std::string rfc_rs256 =
    token("eyJhbGciOiJSUzI1NiJ9", rfc_payload,
          "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_"
          "O8W2Fp5jujG"
          "bds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_"
          "nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K"
          "0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-"
          "eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6"
          "LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw");
const std::string rfc_es256 =
    token("eyJhbGciOiJFUzI1NiJ9", rfc_payload,
          "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q");
const std::string rfc_eddsa =
    token("eyJhbGciOiJFZERTQSJ9", "RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
          "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg");

std::string rfc_eddsa_keys() {
  const std::string x =
      *from_hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  return R"({"keys":[{"kty":"OKP","crv":"Ed25519","x":")" + to_base64url(x) + R"("}]})";
}

Result<std::string> verify(const std::string& jws, std::string_view keys,
                           std::vector<JwsAlgorithm> algorithms = {}) {
  const auto set = KeySet::parse(keys, "keys.json");
  if (!set) return pass_on(set);
  return verify_jws(jws, *set, algorithms);
}

TEST(Jws, TheExamplesOfTheRfcsVerify) {
  EXPECT_TRUE(verify(rfc_hs256, rfc_hs256_keys).has_value());
  EXPECT_TRUE(verify(rfc_rs256, rfc_rs256_keys).has_value());
  EXPECT_TRUE(verify(rfc_es256, rfc_es256_keys).has_value());
  EXPECT_EQ(verify(rfc_eddsa, rfc_eddsa_keys()).value(), "Example of Ed25519 signing");
}

TEST(Jws, AnyFlippedBitOfASignatureOrPayloadIsRefused) {
  const std::array<std::pair<std::string, std::string>, 4> cases{{{rfc_hs256, rfc_hs256_keys},
                                                                  {rfc_rs256, rfc_rs256_keys},
                                                                  {rfc_es256, rfc_es256_keys},
                                                                  {rfc_eddsa, rfc_eddsa_keys()}}};
  for (const auto& [jws, keys] : cases) {
    for (std::size_t at = jws.find('.') + 1; at + 1 < jws.size(); at += 7) {
      if (jws[at] == '.') continue;
      std::string changed = jws;
      changed[at] = changed[at] == 'A' ? 'B' : 'A';
      EXPECT_FALSE(verify(changed, keys).has_value()) << at;
    }
  }
}

TEST(Jws, AnEcdsaSignatureInDerIsRefused) {
  // Only raw r || s of 64 bytes is a JWS signature (RFC 7518 section 3.4).
  const auto at = rfc_es256.rfind('.') + 1;
  const auto raw = *from_base64url(rfc_es256.substr(at));
  ECDSA_SIG* signature = ECDSA_SIG_new();
  const auto* bytes = reinterpret_cast<const unsigned char*>(raw.data());
  ECDSA_SIG_set0(signature, BN_bin2bn(bytes, 32, nullptr), BN_bin2bn(bytes + 32, 32, nullptr));
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(signature, &der);
  const std::string encoded(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  ECDSA_SIG_free(signature);
  EXPECT_FALSE(verify(rfc_es256.substr(0, at) + to_base64url(encoded), rfc_es256_keys).has_value());
}

std::string sign_hs256(const std::string& header, const std::string& payload,
                       const std::string& secret) {
  const std::string input = to_base64url(header) + "." + to_base64url(payload);
  std::array<unsigned char, 32> mac{};
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(input.data()), input.size(), mac.data(), nullptr);
  return input + "." + to_base64url({reinterpret_cast<char*>(mac.data()), mac.size()});
}

std::string pem_of(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PUBKEY(bio, key);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return pem;
}

TEST(Jws, NoneAndUnknownAlgorithmsAreRefusedHoweverSpelled) {
  for (const char* alg : {"none", "None", "NONE", "", "HS512", "PS256", "rs256"}) {
    const std::string header = std::string(R"({"alg":")") + alg + "\"}";
    EXPECT_FALSE(
        verify(to_base64url(header) + "." + rfc_payload + ".", rfc_rs256_keys).has_value());
    EXPECT_FALSE(
        verify(to_base64url(header) + "." + rfc_payload + ".AAAA", rfc_rs256_keys).has_value());
  }
  EXPECT_FALSE(verify(to_base64url("{}") + "." + rfc_payload + ".", rfc_rs256_keys).has_value());
}

TEST(Jws, APublicKeyIsNeverASecret) {
  EVP_PKEY* rsa = EVP_RSA_gen(2048);
  const std::string pem = pem_of(rsa);
  EVP_PKEY_free(rsa);
  const std::string forged = sign_hs256(R"({"alg":"HS256"})", R"({"sub":"eve"})", pem);
  EXPECT_FALSE(verify(forged, pem).has_value());
  EXPECT_FALSE(verify(forged, pem, {JwsAlgorithm::hs256}).has_value());
  const auto offered =
      KeySet::parse(R"({"keys":[{"kty":"oct","k":")" + to_base64url(pem) + R"("}]})", "keys.json");
  ASSERT_FALSE(offered.has_value());
  EXPECT_NE(offered.error().message.find("public key"), std::string::npos);
}

TEST(Jws, HsIsNotAllowedByAccidentBesideAsymmetricKeys) {
  const std::string secret(32, 's');
  const std::string rsa(rfc_rs256_keys);
  const std::string both =
      rsa.substr(0, rsa.size() - 2) + R"(,{"kty":"oct","k":")" + to_base64url(secret) + R"("}]})";
  const std::string signed_by_secret = sign_hs256(R"({"alg":"HS256"})", "{}", secret);
  EXPECT_FALSE(verify(signed_by_secret, both).has_value());
  EXPECT_TRUE(verify(signed_by_secret, both, {JwsAlgorithm::hs256}).has_value());
  EXPECT_FALSE(verify(rfc_rs256, both, {JwsAlgorithm::hs256}).has_value());
}

TEST(Jws, CriticalExtensionsAreRefusedEvenWhenSigned) {
  const std::string secret(32, 's');
  const std::string keys = R"({"keys":[{"kty":"oct","k":")" + to_base64url(secret) + R"("}]})";
  EXPECT_TRUE(verify(sign_hs256(R"({"alg":"HS256"})", "{}", secret), keys).has_value());
  EXPECT_FALSE(verify(sign_hs256(R"({"alg":"HS256","crit":["exp"],"exp":1})", "{}", secret), keys)
                   .has_value());
  EXPECT_FALSE(verify(sign_hs256(R"({"alg":"HS256","crit":[]})", "{}", secret), keys).has_value());
}

TEST(Jws, AKidChoosesItsKeyAndNoOther) {
  const std::string a(32, 'a'), b(32, 'b');
  const std::string keys = R"({"keys":[{"kty":"oct","kid":"a","k":")" + to_base64url(a) +
                           R"("},{"kty":"oct","kid":"b","k":")" + to_base64url(b) + R"("}]})";
  EXPECT_TRUE(verify(sign_hs256(R"({"alg":"HS256","kid":"b"})", "{}", b), keys).has_value());
  EXPECT_FALSE(verify(sign_hs256(R"({"alg":"HS256","kid":"a"})", "{}", b), keys).has_value());
  EXPECT_FALSE(verify(sign_hs256(R"({"alg":"HS256","kid":"c"})", "{}", b), keys).has_value());
  EXPECT_TRUE(verify(sign_hs256(R"({"alg":"HS256"})", "{}", b), keys).has_value());
}

TEST(KeySet, RefusesWhatCannotBeTrusted) {
  const auto refused = [](std::string_view text) {
    const auto set = KeySet::parse(text, "keys.json");
    EXPECT_FALSE(set.has_value()) << text;
    if (set) return std::string();
    EXPECT_EQ(set.error().code, ErrorCode::invalid);
    EXPECT_NE(set.error().message.find("keys.json"), std::string::npos);
    return set.error().message;
  };
  const std::string k = to_base64url(std::string(32, 'k'));
  EXPECT_NE(refused(R"({"keys":[{"kty":"oct","kid":"x","k":")" + k +
                    R"("},{"kty":"oct","kid":"x","k":")" + k + R"("}]})")
                .find("two keys"),
            std::string::npos);
  refused("");
  refused("{}");
  refused(R"({"keys":[]})");
  refused(R"({"keys":[{"kty":"oct","k":"c2hvcnQ"}]})");
  refused(R"({"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]})");
  refused(R"({"keys":[{"kty":"EC","crv":"P-521","x":"AA","y":"AA"}]})");
  refused(R"({"keys":[{"kty":"oct","alg":"RS256","k":")" + k + R"("}]})");
  refused(R"({"keys":[{"kty":"oct","use":"enc","k":")" + k + R"("}]})");
  refused("-----BEGIN PUBLIC KEY-----\nnonsense\n-----END PUBLIC KEY-----\n");
  refused("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
}

TEST(KeySet, ReadsSeveralPemKeys) {
  EVP_PKEY* rsa = EVP_RSA_gen(2048);
  EVP_PKEY* ec = EVP_EC_gen("P-256");
  const auto set = KeySet::parse(pem_of(rsa) + pem_of(ec), "keys.pem");
  EVP_PKEY_free(rsa);
  EVP_PKEY_free(ec);
  ASSERT_TRUE(set.has_value()) << set.error().message;
  EXPECT_EQ(set->size(), 2u);
  EXPECT_TRUE(set->has(JwsAlgorithm::rs256));
  EXPECT_TRUE(set->has(JwsAlgorithm::es256));
}

// --- the source

class HandClock final : public Clock {
 public:
  WallTime wall_now() const override { return WallTime(wall); }
  BootTime boot_now() const override { return BootTime(boot); }
  BootId boot_id() const override { return {}; }
  Duration wall = std::chrono::seconds(1'000'000);
  Duration boot = std::chrono::seconds(100);
};

class JwtSourceTest : public testing::Test {
 protected:
  JwtSourceTest()
      : path_(std::filesystem::path(testing::TempDir()) /
              ("keys-" + std::to_string(::getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    write_keys(secret_);
    options_.keys = path_;
  }
  ~JwtSourceTest() override { std::filesystem::remove(path_); }

  void write_keys(const std::string& secret) const {
    std::ofstream(path_) << R"({"keys":[{"kty":"oct","k":")" + to_base64url(secret) + R"("}]})";
  }
  void open() {
    auto source = jwt_source(options_, clock_);
    ASSERT_TRUE(source.has_value()) << source.error().message;
    source_ = std::move(*source);
  }
  Verdict ask_raw(const std::string& authorization) {
    http::RequestHead head;
    if (!authorization.empty()) head.headers.add("Authorization", authorization);
    return source_->identify(head, {});
  }
  Verdict ask(const std::string& claims) {
    return ask_raw("Bearer " + sign_hs256(R"({"alg":"HS256"})", claims, secret_));
  }
  std::string account(const std::string& claims) {
    const auto verdict = ask(claims);
    const auto* caller = std::get_if<Caller>(&verdict);
    return caller ? caller->account : "refused: " + std::get<NoCaller>(verdict).detail;
  }
  int refusal(const std::string& claims) {
    const auto verdict = ask(claims);
    const auto* refused = std::get_if<NoCaller>(&verdict);
    return refused ? refused->status : 0;
  }

  std::string path_;
  std::string secret_ = std::string(32, 's');
  HandClock clock_;
  JwtOptions options_;
  std::unique_ptr<CallerSource> source_;
};

TEST_F(JwtSourceTest, ARefreshedTokenIsTheSameCaller) {
  open();
  const auto first = account(R"({"iss":"bank","sub":"alice","exp":1000100,"jti":"1"})");
  EXPECT_EQ(first, account(R"({"iss":"bank","sub":"alice","exp":1009999,"jti":"2"})"));
  EXPECT_NE(first, account(R"({"iss":"bank","sub":"bob","exp":1000100})"));
}

TEST_F(JwtSourceTest, TwoIssuersNeverShareAnAccount) {
  open();
  EXPECT_NE(account(R"({"iss":"a","sub":"b:c","exp":1000100})"),
            account(R"({"iss":"a:b","sub":"c","exp":1000100})"));
  EXPECT_NE(account(R"({"iss":"a","sub":"x","exp":1000100})"),
            account(R"({"iss":"b","sub":"x","exp":1000100})"));
}

TEST_F(JwtSourceTest, TimesAreJudgedWithTheLeeway) {
  open();
  EXPECT_EQ(refusal(R"({"sub":"alice","exp":999971})"), 0);
  EXPECT_EQ(refusal(R"({"sub":"alice","exp":999970})"), 401);
  EXPECT_EQ(refusal(R"({"sub":"alice","exp":1000100,"nbf":1000030})"), 0);
  EXPECT_EQ(refusal(R"({"sub":"alice","exp":1000100,"nbf":1000031})"), 401);
  EXPECT_EQ(refusal(R"({"sub":"alice"})"), 401);
  EXPECT_EQ(refusal(R"({"sub":"alice","exp":"1000100"})"), 401);
  EXPECT_EQ(refusal(R"({"sub":"alice","exp":1000100,"nbf":"soon"})"), 401);
}

TEST_F(JwtSourceTest, IssuerAndAudienceMustFit) {
  options_.issuer = "https://bank.example";
  options_.audiences = {"payments"};
  open();
  EXPECT_EQ(refusal(R"({"iss":"https://bank.example","aud":"payments","sub":"a","exp":1000100})"),
            0);
  EXPECT_EQ(
      refusal(R"({"iss":"https://bank.example","aud":["x","payments"],"sub":"a","exp":1000100})"),
      0);
  EXPECT_EQ(refusal(R"({"iss":"https://bank.example","aud":"x payments","sub":"a","exp":1000100})"),
            401);
  EXPECT_EQ(refusal(R"({"iss":"https://bank.example","sub":"a","exp":1000100})"), 401);
  EXPECT_EQ(
      refusal(R"({"iss":"https://bank.example.evil","aud":"payments","sub":"a","exp":1000100})"),
      401);
  EXPECT_EQ(refusal(R"({"aud":"payments","sub":"a","exp":1000100})"), 401);
}

TEST_F(JwtSourceTest, RequiredClaimsAreRankNotIdentity) {
  options_.require = {{"scope", "payments:write"}};
  open();
  EXPECT_EQ(refusal(R"({"sub":"a","exp":1000100,"scope":"read payments:write"})"), 0);
  EXPECT_EQ(refusal(R"({"sub":"a","exp":1000100,"scope":["payments:write"]})"), 0);
  EXPECT_EQ(refusal(R"({"sub":"a","exp":1000100,"scope":"payments:writes"})"), 403);
  EXPECT_EQ(refusal(R"({"sub":"a","exp":1000100})"), 403);
}

TEST_F(JwtSourceTest, NoTokenAndBrokenTokensAreRefusedWithAChallenge) {
  open();
  for (const std::string text : {"", "Basic YTpi", "Bearer", "Bearer ", "Bearer x", "Bearer a.b.c",
                                 "Bearer ..", "Bearer a.b.c.d"}) {
    const auto verdict = ask_raw(text);
    const auto* refused = std::get_if<NoCaller>(&verdict);
    ASSERT_NE(refused, nullptr) << text;
    EXPECT_EQ(refused->status, 401);
    EXPECT_TRUE(refused->challenge.starts_with("Bearer"));
  }
  EXPECT_EQ(std::get<NoCaller>(ask_raw("Bearer " + std::string(20'000, 'a'))).status, 401);
}

TEST_F(JwtSourceTest, AClaimThatNamesNobodyIsRefused) {
  open();
  for (const char* sub : {"\"\"", "null", "true", "[]", "{}", "1.5"}) {
    EXPECT_EQ(refusal(std::string(R"({"exp":1000100,"sub":)") + sub + "}"), 401) << sub;
  }
  EXPECT_EQ(refusal(R"({"exp":1000100,"sub":42})"), 0);
  EXPECT_EQ(refusal(R"({"exp":1000100,"sub":")" + std::string(1100, 'x') + "\"}"), 401);
}

TEST_F(JwtSourceTest, KeysAreReadAgainWhenTheFileChangesAndKeptWhenItIsBroken) {
  open();
  const std::string claims = R"({"sub":"alice","exp":1000100})";
  EXPECT_EQ(refusal(claims), 0);
  std::ofstream(path_) << "half written";
  clock_.boot += std::chrono::seconds(2);
  EXPECT_EQ(refusal(claims), 0) << "a broken file must not lock everybody out";
  write_keys(std::string(32, 't'));
  clock_.boot += std::chrono::seconds(2);
  EXPECT_EQ(refusal(claims), 401) << "the old secret must not count any more";
  secret_ = std::string(32, 't');
  EXPECT_EQ(refusal(claims), 0);
}

TEST_F(JwtSourceTest, AnAlgorithmWithoutAKeyIsAConfigurationError) {
  options_.algorithms = {"RS256"};
  EXPECT_FALSE(jwt_source(options_, clock_).has_value());
  options_.algorithms = {"none"};
  EXPECT_FALSE(jwt_source(options_, clock_).has_value());
  options_.algorithms = {};
  options_.keys = path_ + ".missing";
  EXPECT_FALSE(jwt_source(options_, clock_).has_value());
}

}  // namespace
}  // namespace einmal::identity
