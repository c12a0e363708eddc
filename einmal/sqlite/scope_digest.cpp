#include "einmal/sqlite/scope_digest.hpp"

#include <bit>
#include <cstring>

namespace einmal::sqlite {

namespace {

std::uint64_t load_le(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  static_assert(std::endian::native == std::endian::little);
  return word;
}

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
};

// Part lengths as two bytes: no part is longer than 1024.
void append_part(std::string& out, BytesView part) {
  out.push_back(static_cast<char>(part.size() >> 8));
  out.push_back(static_cast<char>(part.size()));
  out.append(part);
}

}  // namespace

std::uint64_t siphash(const std::array<std::uint64_t, 2>& key, BytesView bytes) {
  SipState s{key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
             key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
  const char* at = bytes.data();
  const char* const end = at + (bytes.size() & ~std::size_t{7});
  for (; at != end; at += 8) {
    const std::uint64_t word = load_le(at);
    s.v3 ^= word;
    s.round();
    s.round();
    s.v0 ^= word;
  }
  std::uint64_t last = static_cast<std::uint64_t>(bytes.size()) << 56;
  for (std::size_t i = 0; i < (bytes.size() & 7); ++i) {
    last |= static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  }
  s.v3 ^= last;
  s.round();
  s.round();
  s.v0 ^= last;
  s.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) s.round();
  return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

ScopeDigests::ScopeDigests(BytesView secret, int bits)
    : key_{load_le(secret.data()), load_le(secret.data() + 8)},
      mask_((std::uint64_t{1} << bits) - 1) {}

std::int64_t ScopeDigests::caller_prefix(BytesView name_space, BytesView caller) const {
  std::string bytes;
  bytes.reserve(name_space.size() + caller.size() + 4);
  append_part(bytes, name_space);
  append_part(bytes, caller);
  return static_cast<std::int64_t>(siphash(key_, bytes) & ~((std::uint64_t{1} << 40) - 1));
}

std::int64_t ScopeDigests::of(const Scope& scope) const {
  std::string bytes;
  bytes.reserve(scope.name_space().size() + scope.caller().size() + scope.operation().size() +
                scope.key().size() + 8);
  append_part(bytes, scope.name_space());
  append_part(bytes, scope.caller());
  const auto prefix = siphash(key_, bytes) & ~((std::uint64_t{1} << 40) - 1);
  append_part(bytes, scope.operation());
  append_part(bytes, scope.key());
  return static_cast<std::int64_t>(prefix | (siphash(key_, bytes) & mask_));
}

ScopeDigests::Range ScopeDigests::of_caller(BytesView name_space, BytesView caller) const {
  const std::int64_t first = caller_prefix(name_space, caller);
  return {first, first | ((std::int64_t{1} << 40) - 1)};
}

}  // namespace einmal::sqlite
