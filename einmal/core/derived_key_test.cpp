#include "einmal/core/derived_key.hpp"

#include <gtest/gtest.h>

#include <set>

namespace einmal {
namespace {

Scope scope(const char* name_space, const char* caller, const char* operation, const char* key) {
  return *Scope::make(name_space, caller, operation, key);
}

// Computed elsewhere from the bytes that docs/workflow.md writes down; the same values stand in
// the test of the SQL function. They never change: other systems remember keys that were derived.
TEST(DerivedKey, IsWhatItWasForTheGoldenScopes) {
  const Scope plain = scope("app", "alice", "pay", "k");
  EXPECT_EQ(derive_key(plain), "50dd2b01495f55e4d294bbe1ccebf54e345c61cacdb6d0c3d5431a4fa837697f");
  EXPECT_EQ(derive_key(plain, "charge"),
            "1cfccee94246ab703e0bfb10ce807103235e0b6791bfa868619b2e5268d825b9");
  EXPECT_EQ(derive_key(plain, ""),
            "e159a80960814e651a710d95b36d9b29c28be70374d19d559dc68680d4905620");
  EXPECT_EQ(derive_uuid(plain, "charge"), "1cfccee9-4246-8b70-be0b-fb10ce807103");
  EXPECT_EQ(derive_key(scope("app", "m\xc3\xbcller", "pay", "k"),
                       "r\xc3\xbc"
                       "ck"),
            "c6be07f5ebd80316a9b7e52ffc309093c258801645c89fb6de46239677f07faa");
}

TEST(DerivedKey, TellsApartWhateverTellsTwoStepsApart) {
  std::set<std::string> keys;
  int made = 0;
  for (const auto& each :
       {scope("app", "alice", "pay", "k"), scope("ap", "palice", "pay", "k"),
        scope("app", "alicep", "ay", "k"), scope("app", "alice", "payk", "k"),
        scope("gateway", "alice", "pay", "k"), scope("app", "alice", "pay", "kk")}) {
    for (const char* step : {"", "charge", "mail", "kcharge"}) {
      keys.insert(derive_key(each, step));
      keys.insert(derive_uuid(each, step));
      made += 2;
    }
    keys.insert(derive_key(each));
    keys.insert(derive_uuid(each));
    made += 2;
  }
  EXPECT_EQ(keys.size(), static_cast<std::size_t>(made));
}

TEST(DerivedKey, HasTheShapeOfAUuidOfVersion8) {
  for (int i = 0; i < 64; ++i) {
    const std::string uuid = derive_uuid(scope("app", "alice", "pay", "k"), std::to_string(i));
    ASSERT_EQ(uuid.size(), 36u);
    EXPECT_EQ(uuid[14], '8');
    EXPECT_NE(std::string("89ab").find(uuid[19]), std::string::npos) << uuid;
  }
}

}  // namespace
}  // namespace einmal
