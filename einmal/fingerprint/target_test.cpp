#include "einmal/fingerprint/target.hpp"

#include <gtest/gtest.h>

#include <string>

namespace einmal {
namespace {

TEST(CanonicalPath, SpellsEquivalentPathsInOneWay) {
  for (const char* spelling : {"/orders", "/orders/", "//orders", "/%6Frders", "/%6frders//",
                               "/./orders", "/x/../orders", "/x/%2e%2E/orders", "/orders?x=1",
                               "/orders/?", "http://host/orders", "HTTPS://host:1/orders/?a"}) {
    EXPECT_EQ(canonical_path(spelling), "/orders") << spelling;
  }
}

TEST(CanonicalPath, KeepsApartWhatAServerMayTellApart) {
  EXPECT_EQ(canonical_path("/a%2Fb"), "/a%2Fb");
  EXPECT_EQ(canonical_path("/a%2fb"), "/a%2Fb");
  EXPECT_EQ(canonical_path("/a/b"), "/a/b");
  EXPECT_EQ(canonical_path("/Orders"), "/Orders");
  EXPECT_EQ(canonical_path("/a%3Bb"), "/a%3Bb");
  EXPECT_EQ(canonical_path("/a;b"), "/a;b");
  EXPECT_EQ(canonical_path("/a#b"), "/a#b");
  EXPECT_EQ(canonical_path("/a%25zz"), "/a%25zz");
}

TEST(CanonicalPath, DecodesOnceOnly) {
  EXPECT_EQ(canonical_path("/%2541"), "/%2541");
  EXPECT_EQ(canonical_path("/%252e%252e/x"), "/%252e%252e/x");
}

TEST(CanonicalPath, TakesAPercentSignThatBeginsNoEscapeForOne) {
  EXPECT_EQ(canonical_path("/a%zz%4"), "/a%25zz%254");
  // Left bare, it would make an escape of what is decoded behind it.
  EXPECT_EQ(canonical_path("/%5%32"), "/%2552");
  EXPECT_EQ(canonical_path("/a%2%46b"), "/a%252Fb");
  EXPECT_EQ(canonical_path("/%%36%66"), "/%256f");
}

TEST(CanonicalPath, RemovesDotSegmentsAsRfc3986AndNeverLeavesTheRoot) {
  EXPECT_EQ(canonical_path("/a/b/c/./../../g"), "/a/g");
  EXPECT_EQ(canonical_path("/../../x"), "/x");
  EXPECT_EQ(canonical_path("/a/.."), "/");
  EXPECT_EQ(canonical_path("/a/."), "/a");
  EXPECT_EQ(canonical_path("/a//../b"), "/a/b");
  EXPECT_EQ(canonical_path("/a/..b/...c"), "/a/..b/...c");
}

TEST(CanonicalPath, EscapesWhatIsNotVisibleAscii) {
  EXPECT_EQ(canonical_path("/k\xc3\xa4se"), "/k%C3%A4se");
  EXPECT_EQ(canonical_path("/k%c3%a4se"), "/k%C3%A4se");
  EXPECT_EQ(canonical_path("/orders/{id}"), "/orders/{id}");
}

TEST(CanonicalPath, LeavesTargetsThatAreNoPathAsTheyCame) {
  EXPECT_EQ(canonical_path("*"), "*");
  EXPECT_EQ(canonical_path("host:443"), "host:443");
  EXPECT_EQ(canonical_path(""), "");
  EXPECT_EQ(canonical_path("/"), "/");
  EXPECT_EQ(canonical_path("http://host"), "/");
  EXPECT_EQ(canonical_path("http://host?x"), "/");
}

TEST(CanonicalPath, IsItsOwnCanonicalForm) {
  for (const char* path : {"/a%2fb//c/", "/%41/../%zz", "/\xff/%7e", "/a/./b/..", "///"}) {
    const std::string once = canonical_path(path);
    EXPECT_EQ(canonical_path(once), once) << path;
  }
}

TEST(SplitTarget, TakesAnAbsoluteFormApart) {
  const auto parts = split_target("http://h:8080/p/q?a=b?c");
  EXPECT_EQ(parts.authority, "h:8080");
  EXPECT_EQ(parts.path, "/p/q");
  EXPECT_EQ(parts.query, "a=b?c");
  EXPECT_EQ(split_target("/p?u=http://x/").path, "/p");
  EXPECT_EQ(split_target("/p?u=http://x/").authority, "");
}

TEST(CanonicalQuery, FollowsTheDocumentedTable) {
  // Equal.
  EXPECT_EQ(canonical_query("a=1&b=2"), canonical_query("b=2&a=1"));
  EXPECT_EQ(canonical_query("x=%41"), canonical_query("x=A"));
  EXPECT_EQ(canonical_query("x=a+b"), canonical_query("x=a%20b"));
  EXPECT_EQ(canonical_query("x=%c3%a4"), canonical_query("x=%C3%A4"));
  EXPECT_EQ(canonical_query("x=%C3%A4"), canonical_query("x=\xc3\xa4"));
  EXPECT_EQ(canonical_query("a=1&&b=2&"), canonical_query("a=1&b=2"));
  EXPECT_EQ(canonical_query("%61=1"), canonical_query("a=1"));
  EXPECT_EQ(canonical_query("a=b=c"), canonical_query("a=b%3Dc"));
  EXPECT_EQ(canonical_query("x=%zz%"), canonical_query("x=%25zz%25"));
  EXPECT_EQ(canonical_query(""), "");
  EXPECT_EQ(canonical_query("&"), "");
  // Different.
  EXPECT_NE(canonical_query("a=1&a=2"), canonical_query("a=2&a=1"));
  EXPECT_NE(canonical_query("x=+"), canonical_query("x=%2B"));
  EXPECT_NE(canonical_query("a"), canonical_query("a="));
  EXPECT_NE(canonical_query("a"), canonical_query(""));
  EXPECT_NE(canonical_query("a=1%26b=2"), canonical_query("a=1&b=2"));
  EXPECT_NE(canonical_query("a%3D1=2"), canonical_query("a=1=2"));
  EXPECT_NE(canonical_query("x=%5%32"), canonical_query("x=%52"));
  EXPECT_NE(canonical_query("x=%%36%66"), canonical_query("x=o"));
  EXPECT_NE(canonical_query("x=A"), canonical_query("x=a"));
  EXPECT_NE(canonical_query("x=1"), canonical_query("X=1"));
}

TEST(CanonicalQuery, KeepsTheOrderOfRepeatedNamesWhileSortingTheRest) {
  EXPECT_EQ(canonical_query("b=1&a=3&b=0&%61=2"), "a=3&a=2&b=1&b=0");
  EXPECT_EQ(canonical_query("b&=x&a="), "=x&a=&b");
}

TEST(CanonicalQuery, KeepsTheOrderOfManyRepeatedNames) {
  std::string query, as, bs;
  for (int i = 0; i < 100; ++i) {
    query += (i % 2 == 0 ? "&b=" : "&a=") + std::to_string(i);
    (i % 2 == 0 ? bs : as) += (i % 2 == 0 ? "&b=" : "&a=") + std::to_string(i);
  }
  EXPECT_EQ("&" + canonical_query(query), as + bs);
}

TEST(CanonicalAuthority, IsLowerCaseWithoutTheDefaultPorts) {
  EXPECT_EQ(canonical_authority("API.Example:80"), "api.example");
  EXPECT_EQ(canonical_authority("api.example:443"), "api.example");
  EXPECT_EQ(canonical_authority("api.example:"), "api.example");
  EXPECT_EQ(canonical_authority("api.example:8080"), "api.example:8080");
  EXPECT_EQ(canonical_authority("[2001:DB8::80]"), "[2001:db8::80]");
  EXPECT_EQ(canonical_authority("[2001:DB8::80]:80"), "[2001:db8::80]");
  EXPECT_EQ(canonical_authority(""), "");
}

}  // namespace
}  // namespace einmal
