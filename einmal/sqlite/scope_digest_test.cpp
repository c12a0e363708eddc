#include "einmal/sqlite/scope_digest.hpp"

#include <gtest/gtest.h>

namespace einmal::sqlite {
namespace {

TEST(SipHash, GivesThePublishedVectors) {
  // Reference implementation, key 00..0f, input 00, 00 01, ... (vectors_sip64).
  const std::array<std::uint64_t, 2> key{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  std::string input;
  EXPECT_EQ(siphash(key, input), 0x726fdb47dd0e0e31u);
  input.push_back('\0');
  EXPECT_EQ(siphash(key, input), 0x74f839c593dc67fdu);
  for (char c = 1; c < 15; ++c) input.push_back(c);
  EXPECT_EQ(siphash(key, input), 0xa129ca6149be45e5u);  // the paper's example, 15 bytes
}

TEST(ScopeDigests, KeepTheRecordsOfACallerInOneRange) {
  const ScopeDigests digests("0123456789abcdef");
  const auto range = digests.of_caller("gateway", "alice");
  for (int i = 0; i < 100; ++i) {
    const auto scope =
        Scope::make("gateway", "alice", "op" + std::to_string(i % 3), std::to_string(i));
    EXPECT_GE(digests.of(*scope), range.first);
    EXPECT_LE(digests.of(*scope), range.last);
  }
  const auto other = Scope::make("gateway", "bob", "op", "1");
  EXPECT_TRUE(digests.of(*other) < range.first || digests.of(*other) > range.last);
}

TEST(ScopeDigests, DependOnTheSecretAndOnEveryPart) {
  const ScopeDigests a("0123456789abcdef"), b("0123456789abcdeg");
  const auto scope = Scope::make("n", "c", "o", "k");
  EXPECT_EQ(a.of(*scope), a.of(*scope));
  EXPECT_NE(a.of(*scope), b.of(*scope));
  EXPECT_NE(a.of(*scope), a.of(*Scope::make("n", "c", "ok", "k")));
  EXPECT_NE(a.of(*Scope::make("n", "c", "ab", "c")), a.of(*Scope::make("n", "c", "a", "bc")));
}

}  // namespace
}  // namespace einmal::sqlite
