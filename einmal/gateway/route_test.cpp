#include "einmal/gateway/route.hpp"

#include <gtest/gtest.h>

namespace einmal {
namespace {

PathTemplate parsed(std::string_view text) { return PathTemplate::parse(text).value(); }

TEST(PathTemplate, MatchesLiteralSegmentsAndOneSegmentForEachParameter) {
  EXPECT_TRUE(parsed("/orders").matches("/orders"));
  EXPECT_TRUE(parsed("/").matches("/"));
  EXPECT_TRUE(parsed("/orders/{id}/refunds").matches("/orders/4711/refunds"));
  EXPECT_TRUE(parsed("/orders/{id}").matches("/orders/a%2Fb"));
}

TEST(PathTemplate, DoesNotMatchOtherPaths) {
  for (const auto* path : {"/order", "/orders/", "/orders/1", "/Orders", "", "*", "orders"})
    EXPECT_FALSE(parsed("/orders").matches(path)) << path;
  for (const auto* path : {"/orders", "/orders/", "/orders/1/2", "/orders//"})
    EXPECT_FALSE(parsed("/orders/{id}").matches(path)) << path;
  EXPECT_FALSE(parsed("/").matches("/orders"));
}

TEST(PathTemplate, OverlapsExactlyWhereOnePathMatchesBoth) {
  EXPECT_TRUE(parsed("/orders/{id}").overlaps(parsed("/orders/new")));
  EXPECT_TRUE(parsed("/{a}/x").overlaps(parsed("/y/{b}")));
  EXPECT_FALSE(parsed("/orders/{id}").overlaps(parsed("/orders")));
  EXPECT_FALSE(parsed("/{a}/x").overlaps(parsed("/y/z")));
}

TEST(PathTemplate, RefusesWhatCouldNeverMatchOrIsAmbiguous) {
  for (const auto* text : {"", "orders", "/orders/", "//orders", "/a/../b", "/orders?x=1",
                           "/orders/{id", "/orders/x{id}", "/orders/{}", "/{a}/{a}", "/%6Frders"}) {
    const auto made = PathTemplate::parse(text);
    ASSERT_FALSE(made) << text;
    EXPECT_EQ(made.error().code, ErrorCode::invalid);
  }
}

}  // namespace
}  // namespace einmal
