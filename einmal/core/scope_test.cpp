#include "einmal/core/scope.hpp"

#include <gtest/gtest.h>

namespace einmal {
namespace {

TEST(Scope, RefusesEmptyAndOverlongParts) {
  EXPECT_TRUE(Scope::make("gateway", "alice", "create-order", "k").has_value());
  EXPECT_EQ(Scope::make("", "alice", "create-order", "k").error().code, ErrorCode::invalid);
  EXPECT_FALSE(Scope::make("gateway", "", "create-order", "k").has_value());
  EXPECT_FALSE(Scope::make("gateway", "alice", "", "k").has_value());
  EXPECT_FALSE(Scope::make("gateway", "alice", "create-order", "").has_value());
  EXPECT_FALSE(Scope::make("gateway", std::string(1025, 'a'), "create-order", "k").has_value());
}

TEST(Scope, TakesKeysOfVisibleAsciiUpTo255Bytes) {
  EXPECT_TRUE(is_valid_key(std::string(255, '~')));
  EXPECT_FALSE(is_valid_key(std::string(256, '~')));
  EXPECT_FALSE(is_valid_key("a b"));
  EXPECT_FALSE(is_valid_key("a\x7f"));
  EXPECT_FALSE(is_valid_key("\xc3\xa4"));
}

TEST(Scope, CanonicalBytesTellApartWhatConcatenationConfuses) {
  const auto a = Scope::make("n", "ab", "c", "k");
  const auto b = Scope::make("n", "a", "bc", "k");
  EXPECT_NE(a->canonical_bytes(), b->canonical_bytes());
}

}  // namespace
}  // namespace einmal
