#include "einmal/gateway/derived_key.hpp"

#include <openssl/sha.h>

#include "einmal/base/bytes.hpp"

namespace einmal::gateway {

std::string derived_key(const Scope& scope) {
  Bytes input;
  append_length_prefixed(input, "einmal derived key 1");
  append_length_prefixed(input, scope.canonical_bytes());
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(input.data()), input.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return to_hex(digest);
}

}  // namespace einmal::gateway
