#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/error.hpp"

/// Verifying signatures of compact JWS (RFC 7515) with keys of a JWK set (RFC 7517) or PEM file.

namespace einmal::identity {

/// What may sign: one algorithm a kind of key, so that no key is ever used for another's algorithm.
enum class JwsAlgorithm : unsigned char {
  rs256,  ///< RSASSA-PKCS1-v1_5 with SHA-256, RSA keys of 2048 bits and more
  es256,  ///< ECDSA on P-256, signature as raw r || s (RFC 7518 section 3.4)
  eddsa,  ///< Ed25519 (RFC 8037)
  hs256,  ///< HMAC with SHA-256, secrets of 32 bytes and more, only from a JWK of kty "oct"
};
std::optional<JwsAlgorithm> jws_algorithm(std::string_view name);
std::string_view name(JwsAlgorithm algorithm);

/// Keys that verify. Immutable; usable from any thread.
class KeySet {
 public:
  /// From the text of a JWK set or of a PEM file (public keys and certificates; private keys are
  /// refused). `where` names the file in messages. Errors: invalid, saying which key and why: weak
  /// or unknown keys, two keys with one kid, a secret that is a public key in disguise, no key.
  static Result<KeySet> parse(std::string_view text, std::string_view where);

  KeySet(KeySet&&) noexcept;
  KeySet& operator=(KeySet&&) noexcept;
  ~KeySet();

  std::size_t size() const;
  bool has(JwsAlgorithm algorithm) const;

 private:
  struct Key;
  explicit KeySet(std::vector<Key> keys);
  friend Result<std::string> verify_jws(std::string_view, const KeySet&,
                                        const std::vector<JwsAlgorithm>&);
  std::vector<Key> keys_;
};

/// The payload of `token` if one of the keys verifies its signature. Allowed are `algorithms`;
/// empty: those of the asymmetric keys, and HS256 if the set has only secrets. Refused: `alg` none,
/// unknown or not that of the key; any `crit` (RFC 7515 section 4.1.11: we understand none); a
/// `kid` that no key has. Errors: invalid, with a reason that contains nothing of the token.
Result<std::string> verify_jws(std::string_view token, const KeySet& keys,
                               const std::vector<JwsAlgorithm>& algorithms);

}  // namespace einmal::identity
