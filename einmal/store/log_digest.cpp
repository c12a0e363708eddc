#include "einmal/store/log_digest.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

namespace einmal {

namespace {

constexpr std::size_t shown_bytes = 8;

std::string digest(const Bytes& secret, BytesView data) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(data.data()), data.size(), mac.data(), &size);
  return to_hex({reinterpret_cast<const char*>(mac.data()), shown_bytes});
}

}  // namespace

std::string LogDigest::of(const Scope& scope) const {
  return digest(secret_, scope.canonical_bytes());
}

std::string LogDigest::of_caller(std::string_view name_space, std::string_view caller) const {
  Bytes parts;
  append_length_prefixed(parts, name_space);
  append_length_prefixed(parts, caller);
  return digest(secret_, parts);
}

}  // namespace einmal
