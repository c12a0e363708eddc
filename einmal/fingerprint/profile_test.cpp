#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "einmal/fingerprint/requests_in_tests.hpp"

namespace einmal {
namespace {

FingerprintOptions everything() {
  FingerprintOptions options;
  options.headers = {"X-Currency", "Prefer"};
  options.ignore = {"/sent_at", "/meta/trace"};
  options.only = {"/order", "/meta"};
  options.defaults = {{"/order/currency", "\"usd\""}, {"/order/count", "1.0"}};
  options.nfc = true;
  options.hosts = {"api.example", "www.example"};
  return options;
}

std::string error_of(FingerprintOptions options) {
  const auto profile = FingerprintProfile::make(std::move(options));
  return profile ? "no error" : profile.error().message;
}

TEST(Profile, IsRebuiltFromItsDefinition) {
  for (const auto& options : {FingerprintOptions{}, everything()}) {
    const auto profile = profile_of(options);
    const auto rebuilt = FingerprintProfile::from_definition(profile.definition());
    ASSERT_TRUE(rebuilt) << rebuilt.error().message;
    EXPECT_EQ(rebuilt->id(), profile.id());
    const auto request = json(R"({"order":{"n":1},"sent_at":2,"meta":{"k":"e\u0301"}})");
    EXPECT_EQ(print_of(request, *rebuilt), print_of(request, profile));
  }
}

TEST(Profile, IsTheSameForOptionsThatMeanTheSame) {
  FingerprintOptions respelled = everything();
  respelled.headers = {"prefer", "x-currency", "IF-MATCH", "Prefer"};
  respelled.ignore = {"/meta/trace", "/sent_at", "/sent_at/below", "/sent_at"};
  respelled.only = {"/meta", "/order/below", "/order"};
  respelled.defaults = {{"/order/currency", " \"\\u0075sd\" "}, {"/order/count", "1e0"}};
  respelled.hosts = {"API.example:443", "www.example:80", "api.example", "www.example"};
  respelled.max_decoded_body = 5;
  EXPECT_EQ(profile_of(respelled).id(), profile_of(everything()).id());
}

TEST(Profile, ChangesWithEveryOptionThatEntersTheDigest) {
  std::vector<FingerprintOptions> variants(8);
  variants[1].headers = {"X-Currency"};
  variants[2].ignore = {"/a"};
  variants[3].only = {"/a"};
  variants[4].defaults = {{"/a", "1"}};
  variants[5].nfc = true;
  variants[6].hosts = {"a"};
  variants[7].hosts = {"b", "a"};
  std::vector<Digest> ids;
  for (const auto& options : variants) ids.push_back(profile_of(options).id());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
}

TEST(Profile, EntersTheDigestSoThatDigestsOfTwoProfilesNeverMeet) {
  FingerprintOptions other;
  other.headers = {"X-Never-Sent"};
  EXPECT_NE(print_of(json("{}")), print_of(json("{}"), other));
}

TEST(Profile, RefusesDefinitionsThatAreDamagedOrNewer) {
  const Bytes good = profile_of(everything()).definition();
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(FingerprintProfile::from_definition(good.substr(0, size))) << size;
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    const auto profile = FingerprintProfile::from_definition(damaged);
    if (profile) {
      EXPECT_EQ(profile->definition(), damaged) << i;
    }
  }
  EXPECT_FALSE(FingerprintProfile::from_definition(good + "x"));
  Bytes newer = profile_of({}).definition();
  newer[19] = 2;
  const auto profile = FingerprintProfile::from_definition(newer);
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, ErrorCode::incompatible);
}

TEST(ProfileOptions, BadPointersAreErrorsThatNameThem) {
  for (const char* pointer : {"", "sent_at", "/a~", "/a~2b", "/\xff"}) {
    FingerprintOptions ignore, only, defaults;
    ignore.ignore = {pointer};
    only.only = {pointer};
    defaults.defaults = {{pointer, "1"}};
    EXPECT_NE(error_of(ignore).find("fingerprint ignore pointer"), std::string::npos);
    EXPECT_NE(error_of(only).find("fingerprint only pointer"), std::string::npos);
    EXPECT_NE(error_of(defaults).find("fingerprint defaults pointer"), std::string::npos);
  }
  FingerprintOptions contradiction;
  contradiction.ignore = {"/a"};
  contradiction.only = {"/a/b"};
  EXPECT_EQ(error_of(contradiction), "fingerprint only pointer \"/a/b\": is ignored as well");
  FingerprintOptions empty_name;
  empty_name.ignore = {"/", "/a//b"};
  EXPECT_EQ(error_of(empty_name), "no error");
}

TEST(ProfileOptions, DefaultsMustBeUsableJson) {
  for (const char* text : {"", "usd", "{\"a\":1,\"a\":2}", "[1", "1e1000000001", "\"\\ud800\""}) {
    FingerprintOptions options;
    options.defaults = {{"/currency", text}};
    EXPECT_NE(error_of(options).find("\"/currency\""), std::string::npos) << text;
  }
  FingerprintOptions twice;
  twice.nfc = true;
  twice.defaults = {{"/\xc3\xa9", "1"}, {"/e\xcc\x81", "2"}};
  EXPECT_NE(error_of(twice).find("given twice"), std::string::npos);
}

TEST(ProfileOptions, HeadersThatCannotBeSemanticAreRefused) {
  for (const char* name :
       {"", "a b", "x:", "Accept", "accept-language", "User-Agent", "Date", "Connection",
        "Authorization", "Cookie", "traceparent", "X-B3-TraceId", "X-Request-ID", "Content-Type",
        "Content-Length", "Host", "Idempotency-Key"}) {
    FingerprintOptions options;
    options.headers = {name};
    EXPECT_NE(error_of(options).find("fingerprint header"), std::string::npos) << name;
  }
  FingerprintOptions fine;
  fine.headers = {"If-Match", "X-Currency", "Prefer", "X-Account", "Dates"};
  EXPECT_EQ(error_of(fine), "no error");
}

TEST(ProfileOptions, HostsMustBeAuthorities) {
  for (const char* host : {"", ":80", "a:80:80", "http://a", "a b"}) {
    FingerprintOptions options;
    options.hosts = {"a", host};
    EXPECT_EQ(error_of(options), "hosts: \"" + std::string(host) + "\" is not HOST or HOST:PORT");
  }
}

}  // namespace
}  // namespace einmal
