#include "einmal/identity/jws.hpp"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include "einmal/identity/base64url.hpp"

namespace einmal::identity {

namespace json = boost::json;

namespace {

template <auto free>
struct Free {
  template <class T>
  void operator()(T* p) const {
    free(p);
  }
};
using PKey = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using PKeyContext = std::unique_ptr<EVP_PKEY_CTX, Free<EVP_PKEY_CTX_free>>;
using Number = std::unique_ptr<BIGNUM, Free<BN_free>>;
using ParamBuilder = std::unique_ptr<OSSL_PARAM_BLD, Free<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Free<OSSL_PARAM_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, Free<ECDSA_SIG_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;

constexpr std::size_t max_keys = 64;
constexpr int min_rsa_bits = 2048;
constexpr std::size_t min_secret_bytes = 32;
constexpr std::size_t p256_coordinate = 32;

const unsigned char* octets(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

std::optional<std::string> text_member(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  if (!value || !value->is_string()) return std::nullopt;
  return std::string(value->as_string());
}

std::optional<std::string> bytes_member(const json::object& object, std::string_view name) {
  const auto text = text_member(object, name);
  return text ? from_base64url(*text) : std::nullopt;
}

PKey public_key_from(const char* type, OSSL_PARAM_BLD* builder) {
  const Params params(OSSL_PARAM_BLD_to_param(builder));
  const PKeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (params && context && EVP_PKEY_fromdata_init(context.get()) == 1)
    EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get());
  return PKey(key);
}

PKey rsa_key(std::string_view modulus, std::string_view exponent) {
  const Number n(BN_bin2bn(octets(modulus), static_cast<int>(modulus.size()), nullptr));
  const Number e(BN_bin2bn(octets(exponent), static_cast<int>(exponent.size()), nullptr));
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (!n || !e || !builder ||
      !OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) ||
      !OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()))
    return nullptr;
  return public_key_from("RSA", builder.get());
}

PKey p256_key(std::string_view x, std::string_view y) {
  if (x.size() != p256_coordinate || y.size() != p256_coordinate) return nullptr;
  std::string point(1, '\x04');
  point.append(x).append(y);
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      !OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) ||
      !OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                        point.size()))
    return nullptr;
  return public_key_from("EC", builder.get());
}

/// The one algorithm that a public key serves, or why it serves none.
Result<JwsAlgorithm> algorithm_of(EVP_PKEY* key) {
  if (!key) return failure(ErrorCode::invalid, "its numbers make no key");
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
      if (EVP_PKEY_get_bits(key) < min_rsa_bits)
        return failure(ErrorCode::invalid, "RSA keys need 2048 bits or more");
      return JwsAlgorithm::rs256;
    case EVP_PKEY_EC: {
      std::array<char, 80> group{};
      std::size_t length = 0;
      EVP_PKEY_get_group_name(key, group.data(), group.size(), &length);
      const std::string_view curve(group.data(), length);
      if (curve != "prime256v1" && curve != "P-256")
        return failure(ErrorCode::invalid, "of elliptic curves only P-256 is supported (ES256)");
      return JwsAlgorithm::es256;
    }
    case EVP_PKEY_ED25519:
      return JwsAlgorithm::eddsa;
    default:
      return failure(ErrorCode::invalid, "only RSA, P-256, Ed25519 and oct keys are supported");
  }
}

bool looks_like_a_public_key(const std::string& secret) {
  if (secret.find("-----BEGIN") != std::string::npos) return true;
  const unsigned char* at = octets(secret);
  const PKey key(d2i_PUBKEY(nullptr, &at, static_cast<long>(secret.size())));
  ERR_clear_error();
  return key != nullptr;
}

bool may_verify(const json::object& jwk) {
  if (const auto use = text_member(jwk, "use"); use && *use != "sig") return false;
  const auto* operations = jwk.if_contains("key_ops");
  if (!operations || !operations->is_array()) return true;
  const auto& list = operations->as_array();
  return std::any_of(list.begin(), list.end(), [](const json::value& operation) {
    return operation.is_string() && operation.as_string() == "verify";
  });
}

}  // namespace

struct KeySet::Key {
  JwsAlgorithm algorithm = JwsAlgorithm::rs256;
  std::string kid;
  PKey key;
  std::string secret;

  static Result<Key> from_jwk(const json::object& jwk);
  bool verifies(std::string_view signed_bytes, std::string_view signature) const;
};

std::optional<JwsAlgorithm> jws_algorithm(std::string_view text) {
  for (const auto algorithm :
       {JwsAlgorithm::rs256, JwsAlgorithm::es256, JwsAlgorithm::eddsa, JwsAlgorithm::hs256}) {
    if (text == name(algorithm)) return algorithm;
  }
  return std::nullopt;
}

std::string_view name(JwsAlgorithm algorithm) {
  switch (algorithm) {
    case JwsAlgorithm::rs256:
      return "RS256";
    case JwsAlgorithm::es256:
      return "ES256";
    case JwsAlgorithm::eddsa:
      return "EdDSA";
    case JwsAlgorithm::hs256:
      return "HS256";
  }
  return "";
}

Result<KeySet::Key> KeySet::Key::from_jwk(const json::object& jwk) {
  Key key;
  key.kid = text_member(jwk, "kid").value_or("");
  const auto type = text_member(jwk, "kty").value_or("");
  if (type == "oct") {
    const auto secret = bytes_member(jwk, "k");
    if (!secret || secret->size() < min_secret_bytes)
      return failure(ErrorCode::invalid,
                     "an oct key needs 32 bytes or more (RFC 7518 section 3.2)");
    if (looks_like_a_public_key(*secret))
      return failure(ErrorCode::invalid,
                     "its secret is a public key; everybody could sign with it");
    key.algorithm = JwsAlgorithm::hs256;
    key.secret = *secret;
  } else {
    if (jwk.if_contains("d"))
      return failure(ErrorCode::invalid, "it is a private key; give the public part only");
    if (type == "RSA")
      key.key = rsa_key(bytes_member(jwk, "n").value_or(""), bytes_member(jwk, "e").value_or(""));
    if (type == "EC" && text_member(jwk, "crv") == "P-256")
      key.key = p256_key(bytes_member(jwk, "x").value_or(""), bytes_member(jwk, "y").value_or(""));
    if (type == "OKP" && text_member(jwk, "crv") == "Ed25519") {
      const auto x = bytes_member(jwk, "x").value_or("");
      key.key.reset(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, octets(x), x.size()));
    }
    auto algorithm = algorithm_of(key.key.get());
    if (!algorithm) return pass_on(algorithm);
    key.algorithm = *algorithm;
  }
  if (const auto alg = text_member(jwk, "alg"); alg && *alg != name(key.algorithm))
    return failure(ErrorCode::invalid, "its alg is not one that a key of its kty serves here");
  return key;
}

bool KeySet::Key::verifies(std::string_view signed_bytes, std::string_view signature) const {
  if (algorithm == JwsAlgorithm::hs256) {
    std::array<unsigned char, 32> mac{};
    HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), octets(signed_bytes),
         signed_bytes.size(), mac.data(), nullptr);
    return signature.size() == mac.size() &&
           CRYPTO_memcmp(signature.data(), mac.data(), mac.size()) == 0;
  }
  std::string der;
  if (algorithm == JwsAlgorithm::es256) {
    if (signature.size() != 2 * p256_coordinate) return false;
    const Signature raw(ECDSA_SIG_new());
    BIGNUM* r = BN_bin2bn(octets(signature), p256_coordinate, nullptr);
    BIGNUM* s = BN_bin2bn(octets(signature) + p256_coordinate, p256_coordinate, nullptr);
    if (!raw || !r || !s || ECDSA_SIG_set0(raw.get(), r, s) != 1) {
      BN_free(r);
      BN_free(s);
      return false;
    }
    unsigned char* encoded = nullptr;
    const int length = i2d_ECDSA_SIG(raw.get(), &encoded);
    if (length <= 0) return false;
    der.assign(reinterpret_cast<char*>(encoded), static_cast<std::size_t>(length));
    OPENSSL_free(encoded);
    signature = der;
  }
  const DigestContext context(EVP_MD_CTX_new());
  const EVP_MD* hash = algorithm == JwsAlgorithm::eddsa ? nullptr : EVP_sha256();
  const bool good = context &&
                    EVP_DigestVerifyInit(context.get(), nullptr, hash, nullptr, key.get()) == 1 &&
                    EVP_DigestVerify(context.get(), octets(signature), signature.size(),
                                     octets(signed_bytes), signed_bytes.size()) == 1;
  ERR_clear_error();
  return good;
}

KeySet::KeySet(std::vector<Key> keys) : keys_(std::move(keys)) {}
KeySet::KeySet(KeySet&&) noexcept = default;
KeySet& KeySet::operator=(KeySet&&) noexcept = default;
KeySet::~KeySet() = default;
std::size_t KeySet::size() const { return keys_.size(); }

bool KeySet::has(JwsAlgorithm algorithm) const {
  return std::any_of(keys_.begin(), keys_.end(),
                     [&](const Key& key) { return key.algorithm == algorithm; });
}

Result<KeySet> KeySet::parse(std::string_view text, std::string_view where) {
  const auto refuse = [&](std::string why) {
    return failure(ErrorCode::invalid, std::string(where) + ": " + std::move(why));
  };
  std::vector<Key> keys;
  const auto add = [&](Key key) -> std::optional<std::string> {
    if (keys.size() == max_keys) return "more than 64 keys";
    for (const auto& other : keys) {
      if (!key.kid.empty() && other.kid == key.kid)
        return "two keys have the kid \"" + key.kid + '"';
    }
    keys.push_back(std::move(key));
    return std::nullopt;
  };

  if (text.find("-----BEGIN") != std::string_view::npos) {
    if (text.find("PRIVATE KEY-----") != std::string_view::npos)
      return refuse("contains a private key; give the public part only");
    for (std::size_t at = text.find("-----BEGIN"); at != std::string_view::npos;
         at = text.find("-----BEGIN", at + 1)) {
      const auto block = text.substr(at);
      const Bio bio(BIO_new_mem_buf(block.data(), static_cast<int>(block.size())));
      Key key;
      if (block.starts_with("-----BEGIN CERTIFICATE")) {
        const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
        if (certificate) key.key.reset(X509_get_pubkey(certificate.get()));
      } else {
        key.key.reset(PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr));
      }
      ERR_clear_error();
      const auto algorithm = algorithm_of(key.key.get());
      if (!algorithm)
        return refuse("PEM block " + std::to_string(keys.size() + 1) + ": " +
                      algorithm.error().message);
      key.algorithm = *algorithm;
      if (auto why = add(std::move(key))) return refuse(*why);
    }
  } else {
    json::error_code error;
    const json::value document = json::parse({text.data(), text.size()}, error);
    const auto* root = error ? nullptr : document.if_object();
    const auto* list = root ? root->if_contains("keys") : nullptr;
    if (!list || !list->is_array())
      return refuse("neither PEM nor a JWK set ({\"keys\": [...]}, RFC 7517)");
    std::size_t number = 0;
    for (const auto& entry : list->as_array()) {
      ++number;
      const auto* jwk = entry.if_object();
      if (!jwk) return refuse("key " + std::to_string(number) + ": not an object");
      if (!may_verify(*jwk)) continue;
      auto key = Key::from_jwk(*jwk);
      if (!key) return refuse("key " + std::to_string(number) + ": " + key.error().message);
      if (auto why = add(std::move(*key))) return refuse(*why);
    }
  }
  if (keys.empty()) return refuse("contains no key that may verify signatures");
  return KeySet(std::move(keys));
}

Result<std::string> verify_jws(std::string_view token, const KeySet& keys,
                               const std::vector<JwsAlgorithm>& algorithms) {
  const auto refuse = [](const char* why) { return failure(ErrorCode::invalid, why); };
  const auto first = token.find('.');
  const auto second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos)
    return refuse("the token is not a compact JWS of three parts");
  const auto header_bytes = from_base64url(token.substr(0, first));
  auto payload = from_base64url(token.substr(first + 1, second - first - 1));
  const auto signature = from_base64url(token.substr(second + 1));
  if (!header_bytes || !payload || !signature) return refuse("the token is not base64url");

  json::error_code error;
  const json::value document = json::parse(*header_bytes, error);
  const auto* header = error ? nullptr : document.if_object();
  if (!header) return refuse("the token's header is not a JSON object");
  if (header->if_contains("crit")) return refuse("the token has critical extensions");
  const auto algorithm = jws_algorithm(text_member(*header, "alg").value_or(""));
  if (!algorithm) return refuse("the token's algorithm is not supported");
  const bool asymmetric = keys.has(JwsAlgorithm::rs256) || keys.has(JwsAlgorithm::es256) ||
                          keys.has(JwsAlgorithm::eddsa);
  const bool allowed = algorithms.empty() ? *algorithm != JwsAlgorithm::hs256 || !asymmetric
                                          : std::find(algorithms.begin(), algorithms.end(),
                                                      *algorithm) != algorithms.end();
  if (!allowed) return refuse("the token's algorithm is not allowed");

  const auto kid = text_member(*header, "kid");
  const bool by_kid = kid && std::any_of(keys.keys_.begin(), keys.keys_.end(),
                                         [](const auto& key) { return !key.kid.empty(); });
  const auto signed_bytes = token.substr(0, second);
  for (const auto& key : keys.keys_) {
    if (key.algorithm != *algorithm || (by_kid && key.kid != *kid)) continue;
    if (key.verifies(signed_bytes, *signature)) return std::move(*payload);
  }
  return refuse("no key verifies the token's signature");
}

}  // namespace einmal::identity
