#include "einmal/core/derived_key.hpp"

#include <openssl/sha.h>

#include "einmal/base/bytes.hpp"
#include "einmal/base/ids.hpp"

namespace einmal {

namespace {

Bytes digest_of(const Scope& scope, std::optional<std::string_view> step) {
  Bytes input;
  append_length_prefixed(input, "einmal derived key 1");
  append_length_prefixed(input, scope.canonical_bytes());
  if (step) append_length_prefixed(input, *step);
  Bytes digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(input.data()), input.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

struct DerivedTag {};

}  // namespace

std::string derive_key(const Scope& scope, std::optional<std::string_view> step) {
  return to_hex(digest_of(scope, step));
}

std::string derive_uuid(const Scope& scope, std::optional<std::string_view> step) {
  Bytes bytes = digest_of(scope, step).substr(0, 16);
  bytes[6] = static_cast<char>((bytes[6] & 0x0f) | 0x80);
  bytes[8] = static_cast<char>((bytes[8] & 0x3f) | 0x80);
  return Id128<DerivedTag>::from_bytes(bytes)->text();
}

}  // namespace einmal
