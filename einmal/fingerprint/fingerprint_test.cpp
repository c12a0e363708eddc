#include "einmal/fingerprint/fingerprint.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "einmal/fingerprint/requests_in_tests.hpp"

namespace einmal {
namespace {

TEST(FingerprintOfARequest, DependsOnEachOfItsParts) {
  const SampleRequest plain = json("{}");
  const auto changed = [&](auto change) {
    SampleRequest request = plain;
    change(request);
    return request;
  };
  EXPECT_TRUE(same(plain, json("{}")));
  EXPECT_TRUE(differ(plain, changed([](auto& r) { r.method = "PATCH"; })));
  EXPECT_TRUE(differ(plain, changed([](auto& r) { r.operation = "create"; })));
  EXPECT_TRUE(differ(plain, changed([](auto& r) { r.authority = "api2.example"; })));
  EXPECT_TRUE(differ(plain, changed([](auto& r) { r.target = "/orders/1"; })));
  EXPECT_TRUE(differ(plain, changed([](auto& r) { r.target = "/orders?x"; })));
  EXPECT_TRUE(differ(plain, changed([](auto& r) { r.body = "[]"; })));
  EXPECT_TRUE(differ(plain, sent("application/cbor", "{}")));
  EXPECT_TRUE(differ(plain, changed([](auto& r) { r.headers = {}; })));
}

TEST(FingerprintOfARequest, DoesNotLetOnePartRunIntoTheNext) {
  SampleRequest a = to("/x"), b = to("/x");
  a.method = "POST";
  a.operation = "ab";
  b.method = "POSTa";
  b.operation = "b";
  EXPECT_TRUE(differ(a, b));
  FingerprintOptions two;
  two.headers = {"X-A", "X-B"};
  EXPECT_TRUE(differ(to("/").with("X-A", "1"), to("/").with("X-B", "1"), two));
  EXPECT_TRUE(differ(to("/").with("X-A", "12").with("X-B", ""),
                     to("/").with("X-A", "1").with("X-B", "2"), two));
}

// Field report C07: the query string is part of the request.
TEST(FingerprintOfATarget, TellsTargetsOfOneOperationApart) {
  EXPECT_TRUE(differ(to("/transfer?to=acct-1"), to("/transfer?to=acct-2")));
  EXPECT_TRUE(differ(to("/accounts/1/close"), to("/accounts/2/close")));
  SampleRequest patch = to("/orders");
  patch.method = "PATCH";
  EXPECT_TRUE(differ(to("/orders"), patch));
  EXPECT_TRUE(differ(to("/x?a=1&a=2"), to("/x?a=2&a=1")));
  EXPECT_TRUE(differ(to("/a%2Fb"), to("/a/b")));
  EXPECT_TRUE(differ(to("/x?a=1"), to("/x?a=1&a=1")));
  EXPECT_TRUE(differ(to("/x?a"), to("/x")));
  EXPECT_TRUE(differ(to("/x?a=b%26c=d"), to("/x?a=b&c=d")));
  EXPECT_TRUE(differ(to("/x#1"), to("/x#2")));
  EXPECT_TRUE(differ(to("/x#1"), to("/x")));
  EXPECT_TRUE(differ(to("/x%3Fa=1"), to("/x?a=1")));
  EXPECT_TRUE(differ(to("/X"), to("/x")));
}

TEST(FingerprintOfATarget, FollowsTheDocumentedTableOfEqualSpellings) {
  EXPECT_TRUE(same(to("/x?a=1&b=2"), to("/x?b=2&a=1")));
  EXPECT_TRUE(same(to("/%41?q=%41"), to("/A?q=A")));
  EXPECT_TRUE(same(to("/x?q=a+b"), to("/x?q=a%20b")));
  EXPECT_TRUE(same(to("/x"), to("/x/")));
  EXPECT_TRUE(same(to("/x"), to("/x?")));
  EXPECT_TRUE(same(to("/x"), to("//x")));
  EXPECT_TRUE(same(to("/x?a=1"), to("http://api.example/x?a=1")));
}

TEST(FingerprintOfAnAuthority, IgnoresCaseAndDefaultPortAndKnowsAliases) {
  SampleRequest plain = to("/x"), spelled = to("/x"), other = to("/x");
  spelled.authority = "API.Example:443";
  other.authority = "www.example";
  EXPECT_TRUE(same(plain, spelled));
  EXPECT_TRUE(differ(plain, other));
  FingerprintOptions aliases;
  aliases.hosts = {"api.example", "WWW.example:80"};
  EXPECT_TRUE(same(plain, other, aliases));
  other.authority = "www.example:8080";
  EXPECT_TRUE(differ(plain, other, aliases));
}

TEST(FingerprintOfHeaders, LooksOnlyAtSemanticOnes) {
  const SampleRequest plain = json("{}");
  for (const char* name :
       {"User-Agent", "traceparent", "Date", "Accept", "Accept-Language", "Connection",
        "X-Currency", "Authorization", "Idempotency-Key", "Content-Length", "Transfer-Encoding"}) {
    EXPECT_TRUE(same(plain, plain.with(name, "v"))) << name;
  }
  EXPECT_TRUE(differ(plain, plain.with("If-Match", "\"1\"")));
  EXPECT_TRUE(differ(plain, plain.with("if-unmodified-since", "Sat, 29 Oct 1994 19:43:31 GMT")));
}

TEST(FingerprintOfHeaders, TellsAbsentEmptyAndRepeatedApart) {
  FingerprintOptions options;
  options.headers = {"X-Currency"};
  const SampleRequest absent = json("{}");
  const auto once = [&](const char* value) { return absent.with("x-currency", value); };
  const std::vector<SampleRequest> all = {absent,
                                          once(""),
                                          once("usd"),
                                          once("eur"),
                                          once("usd").with("X-Currency", "eur"),
                                          once("eur").with("X-Currency", "usd"),
                                          once("usd, eur"),
                                          once("").with("X-Currency", "")};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(same(all[i], all[j], options), i == j) << i << " and " << j;
    }
  }
  EXPECT_TRUE(same(absent.with("X-CURRENCY", "usd"), once("usd"), options));
}

// Field report C08: the spelling of the media type is transport noise.
TEST(FingerprintOfAMediaType, IgnoresItsSpelling) {
  const SampleRequest plain = json("{}");
  for (const char* spelling :
       {"Application/JSON", "application/json; charset=utf-8", "application/json;charset=\"UTF-8\"",
        "application/json ; Charset=Utf-8", "application/json; charset=utf8", "application/json;",
        " application/json\t"}) {
    EXPECT_TRUE(same(plain, sent(spelling, "{ }"))) << spelling;
  }
  EXPECT_TRUE(same(sent("application/vnd.a+json; v=1; p=\"x\"", "{}"),
                   sent("application/vnd.A+JSON;p=x;charset=utf-8;V=\"1\"", " {}")));
  EXPECT_TRUE(differ(plain, sent("application/merge-patch+json", "{}")));
  EXPECT_TRUE(
      differ(sent("application/vnd.a+json; v=1", "{}"), sent("application/vnd.a+json; v=2", "{}")));
  EXPECT_TRUE(same(sent("text/plain; charset=UTF-8", "x"), sent("Text/Plain;charset=utf-8", "x")));
  EXPECT_TRUE(differ(sent("text/plain; charset=utf-8", "x"), sent("text/plain", "x")));
}

TEST(FingerprintOfAMediaType, TellsAbsentEmptyMalformedAndRepeatedApart) {
  SampleRequest absent;
  const std::vector<SampleRequest> all = {absent,
                                          sent("", ""),
                                          sent("json", ""),
                                          sent("application/json; a=1; a=2", ""),
                                          json("").with("Content-Type", "application/json"),
                                          json("")};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(same(all[i], all[j]), i == j) << i << " and " << j;
    }
  }
}

TEST(FingerprintOfAMediaType, ThatIsMalformedMakesTheBodyBytes) {
  for (const char* type : {"application/json; a=1; a=2", "application/json; a",
                           "application/json;a=", "application/json; a=\"1", "application/json x",
                           "application / json"}) {
    EXPECT_TRUE(differ(sent(type, "{}"), sent(type, "{ }"))) << type;
  }
}

TEST(FingerprintOfAMediaType, ComparesJsonInAnotherCharsetAsBytes) {
  const std::string latin1 = "{\"name\":\"J\xf6rg\"}";
  EXPECT_TRUE(is_unusable(json(latin1)));
  EXPECT_TRUE(same(sent("application/json; charset=iso-8859-1", latin1),
                   sent("application/json; charset=ISO-8859-1", latin1)));
  EXPECT_TRUE(differ(sent("application/json; charset=iso-8859-1", latin1),
                     sent("application/json; charset=iso-8859-1", latin1 + " ")));
}

TEST(FingerprintOfOtherBodies, ComparesBytes) {
  EXPECT_TRUE(differ(sent("text/plain", "a"), sent("text/plain", "a ")));
  EXPECT_TRUE(differ(sent("application/xml", "<a/>"), sent("application/xml", "<a />")));
  EXPECT_TRUE(differ(sent("application/x-ndjson", "{}"), sent("application/x-ndjson", "{ }")));
  SampleRequest untyped, other;
  untyped.body = "{}";
  other.body = "{ }";
  EXPECT_TRUE(differ(untyped, other));
}

TEST(FingerprintOfAForm, ComparesDecodedPairs) {
  const auto form = [](const char* body) {
    return sent("application/x-www-form-urlencoded", body);
  };
  EXPECT_TRUE(same(form("a=x+y&b=2"), form("b=2&%61=x%20y")));
  EXPECT_TRUE(same(form("a=1"), sent("Application/X-WWW-Form-URLEncoded;charset=UTF-8", "a=1")));
  EXPECT_TRUE(differ(form("a=1&a=2"), form("a=2&a=1")));
  EXPECT_TRUE(differ(form("a=x+y"), form("a=x%2By")));
  EXPECT_TRUE(differ(form("a"), form("a=")));
  EXPECT_TRUE(differ(form("a=1"), sent("text/plain", "a=1")));
}

TEST(FingerprintDigests, AreTheSameInEveryThread) {
  const auto profile = profile_of({});
  const std::string expected = print_of(json(R"({"a":[1,2,{"b":null}]})"), profile);
  std::vector<std::thread> threads;
  std::vector<int> agree(4, 0);
  for (int& count : agree) {
    threads.emplace_back([&profile, &count, &expected] {
      for (int i = 0; i < 200; ++i) {
        count += print_of(json(R"({"a":[1.0,2,{"\u0062":null}]})"), profile) == expected;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const int count : agree) EXPECT_EQ(count, 200);
}

}  // namespace
}  // namespace einmal
