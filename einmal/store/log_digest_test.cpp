#include "einmal/store/log_digest.hpp"

#include <gtest/gtest.h>

#include "einmal/base/clock.hpp"
#include "einmal/store/memory.hpp"

namespace einmal {
namespace {

Scope scope(std::string caller, std::string key) {
  return *Scope::make("app", std::move(caller), "pay", std::move(key));
}

TEST(LogDigest, is_stable_sixteen_hex_digits_and_differs_by_scope_and_store) {
  const SystemClock clock;
  SystemRandom random;
  const MemoryStore one(clock, random);
  const MemoryStore two(clock, random);
  const LogDigest digest(one);
  EXPECT_EQ(digest.of(scope("a", "k")).size(), 16u);
  EXPECT_EQ(digest.of(scope("a", "k")), LogDigest(one).of(scope("a", "k")));
  EXPECT_NE(digest.of(scope("a", "k")), digest.of(scope("a", "k2")));
  EXPECT_NE(digest.of(scope("a", "k")), digest.of(scope("b", "k")));
  EXPECT_NE(digest.of(scope("a", "k")), LogDigest(two).of(scope("a", "k")));
  EXPECT_EQ(digest.of_caller("app", "a"), digest.of_caller("app", "a"));
  EXPECT_NE(digest.of_caller("app", "a"), digest.of_caller("gateway", "a"));
  EXPECT_NE(digest.of_caller("ap", "pa"), digest.of_caller("app", "a")) << "parts keep apart";
}

}  // namespace
}  // namespace einmal
