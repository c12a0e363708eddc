#include <gtest/gtest.h>

#include <string>

#include "einmal/fingerprint/requests_in_tests.hpp"

namespace einmal {
namespace {

FingerprintOptions ignoring(std::vector<std::string> pointers) {
  FingerprintOptions options;
  options.ignore = std::move(pointers);
  return options;
}

FingerprintOptions using_only(std::vector<std::string> pointers) {
  FingerprintOptions options;
  options.only = std::move(pointers);
  return options;
}

FingerprintOptions defaulting(std::map<std::string, std::string> defaults) {
  FingerprintOptions options;
  options.defaults = std::move(defaults);
  return options;
}

// Field report C05: numbers that differ only beyond a double's precision.
TEST(JsonBody, NumbersThatDifferNeverAgree) {
  const std::string many(400, '7');
  const std::pair<std::string, std::string> pairs[] = {
      {"9007199254740993", "9007199254740992"},
      {"12345678901234567890", "12345678901234567891"},
      {"0.1", "0.10000000000000001"},
      {"1e400", "1e401"},
      {"1e-400", "1e-401"},
      {"1e-400", "0"},
      {many + "1", many + "2"},
      {many, many + "0"},
      {"1", "-1"},
      {"12e1", "1e21"},
      {"1e1000000000", "1e999999999"},
      {"18446744073709551616", "0"},
      {"1", "\"1\""},
      {"0", "false"},
      {"0", "null"},
      {"1.1", "11"},
  };
  for (const auto& [a, b] : pairs) {
    for (const char* around : {"%", "{\"account\":%,\"amount\":5}", "[[0,%],{}]"}) {
      const auto place = [&](const std::string& number) {
        std::string text = around;
        return json(text.replace(text.find('%'), 1, number));
      };
      EXPECT_TRUE(differ(place(a), place(b))) << a << " and " << b << " in " << around;
    }
  }
}

TEST(JsonBody, NumbersThatAreEqualAgreeHoweverTheyAreWritten) {
  for (const char* one : {"1.0", "1e0", "10e-1", "1E0", "1e+0", "0.001e3", "1.000"}) {
    EXPECT_TRUE(same(json("1"), json(one))) << one;
    EXPECT_TRUE(same(json("[{\"a\":[1]}]"), json("[{\"a\":[" + std::string(one) + "]}]"))) << one;
  }
  EXPECT_TRUE(same(json("-0"), json("0")));
  EXPECT_TRUE(same(json("0e5"), json("-0.000")));
  EXPECT_TRUE(same(json("1E2"), json("100")));
  EXPECT_TRUE(same(json("9007199254740993"), json("9007199254740993.0")));
  EXPECT_TRUE(
      same(json("123456789012345678901234567890"), json("1.2345678901234567890123456789e29")));
}

// Field report C06: duplicate member names.
TEST(JsonBody, DuplicateNamesAreUnusableAtAnyDepthInAnyDisguiseEvenWhereIgnored) {
  const auto reason = [](std::string body, FingerprintOptions options = {}) {
    return print_of(json(std::move(body)), std::move(options));
  };
  EXPECT_EQ(reason(R"({"amount":10,"amount":1000})"),
            "unusable: JSON body: member name \"amount\" twice at the top level");
  EXPECT_EQ(reason(R"({"amount":10,"amount":10})"),
            "unusable: JSON body: member name \"amount\" twice at the top level");
  EXPECT_EQ(reason(R"({"a":{"b":[{"c":1,"c":2}]}})"),
            "unusable: JSON body: member name \"c\" twice at /a/b/0");
  EXPECT_EQ(reason(R"({"amount":1,"\u0061mount":2})"),
            "unusable: JSON body: member name \"amount\" twice at the top level");
  EXPECT_EQ(reason(R"({"m":{"x":1,"x":2}})", ignoring({"/m"})),
            "unusable: JSON body: member name \"x\" twice at /m");
  EXPECT_EQ(reason(R"({"m":1,"m":2})", ignoring({"/m"})),
            "unusable: JSON body: member name \"m\" twice at the top level");
  EXPECT_EQ(reason(R"({"a":1,"m":{"x":1,"x":2}})", using_only({"/a"})),
            "unusable: JSON body: member name \"x\" twice at /m");
  EXPECT_TRUE(same(json(R"({"a":1,"A":2})"), json(R"({"A":2,"a":1})")));
  EXPECT_TRUE(differ(json(R"({"a":1,"A":2})"), json(R"({"A":1,"a":2})")));
}

TEST(JsonBody, ReasonsCarryNoValueAndStayShortAndPrintable) {
  const std::string name(10'000, '\x01');
  std::string escaped;
  for (int i = 0; i < 10'000; ++i) escaped += "\\u0001";
  const std::string text = "{\"" + escaped + "\":{\"" + escaped + "\":{\"k\":\"secret\",\"k\":1}}}";
  const std::string reason = print_of(json(text));
  EXPECT_LE(reason.size(), 410u);
  EXPECT_EQ(reason.find("secret"), std::string::npos);
  for (const char c : reason) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
  const std::string twice = print_of(json("{\"" + escaped + "\":1,\"" + escaped + "\":1}"));
  EXPECT_LE(twice.size(), 410u);
}

TEST(JsonBody, WithoutASingleMeaningIsUnusable) {
  EXPECT_TRUE(is_unusable(json(R"(["\ud800"])")));
  EXPECT_TRUE(is_unusable(json("[\"\xc0\x80\"]")));
  EXPECT_TRUE(is_unusable(json("\xef\xbb\xbf{}")));
  EXPECT_TRUE(is_unusable(json(std::string(65, '[') + std::string(65, ']'))));
  EXPECT_TRUE(is_unusable(json("1e1000000001")));
  EXPECT_FALSE(is_unusable(json(std::string(64, '[') + std::string(64, ']'))));
}

TEST(JsonBody, WithBrokenGrammarIsComparedAsBytesInADomainOfItsOwn) {
  EXPECT_TRUE(same(json("{\"a\":1,}"), json("{\"a\":1,}")));
  EXPECT_TRUE(differ(json("{\"a\":1,}"), json("{\"a\":1, }")));
  EXPECT_TRUE(differ(json("{\"a\":1,\"a\":1,}"), json("{\"a\":1,}")));
  EXPECT_TRUE(differ(json(""), json("\"\"")));
  // What the canonical form of `1` is made of, sent as a body, is not that body.
  EXPECT_TRUE(differ(json("J+\x01\x31"), json("1")));
}

TEST(JsonBody, SpellingOfStringsWhiteSpaceAndOrderDoNotMatter) {
  EXPECT_TRUE(same(json(R"({"a":"\u00e9\/\n","b":[1,2]})"),
                   json("\n{ \"b\" : [ 1 , 2 ] ,\t\"\\u0061\":\"\xc3\xa9/\\u000A\" }\r\n")));
  EXPECT_TRUE(same(json(R"("\ud83d\ude00")"), json("\"\xf0\x9f\x98\x80\"")));
  EXPECT_TRUE(differ(json("[1,2]"), json("[2,1]")));
  EXPECT_TRUE(differ(json("[1,[2]]"), json("[[1],2]")));
  EXPECT_TRUE(differ(json("[[],[]]"), json("[[[]]]")));
  EXPECT_TRUE(differ(json(R"(["a","b"])"), json(R"(["a,b"])")));
  EXPECT_TRUE(differ(json(R"({"a":{}})"), json(R"({"a":[]})")));
  EXPECT_TRUE(differ(json(R"({"a":null})"), json("{}")));
  EXPECT_TRUE(differ(json("\"a\""), json("\"a\\u0000\"")));
  const std::string long_text(20'000, 'x');
  EXPECT_TRUE(
      same(json("[\"" + long_text + "\"]"), json("[\"\\u0078" + long_text.substr(1) + "\"]")));
  EXPECT_TRUE(differ(json("[\"" + long_text + "\"]"), json("[\"" + long_text + "y\"]")));
}

TEST(JsonBody, EscapesMeanTheSameWhereverTheyFallInTheParsersBuffers) {
  // Boost.JSON unescapes through a buffer on the stack; its size is a power of two.
  for (const std::size_t buffer : {256u, 512u, 1024u, 2048u, 4096u, 8192u}) {
    for (std::size_t pad = buffer - 16; pad < buffer + 3; ++pad) {
      const std::string before = "[\"\\n" + std::string(pad, 'x');
      const std::string behind = std::string(20, 'y') + "\"]";
      EXPECT_TRUE(same(json(before + R"(\ud83d\ude00\u00e9)" + behind),
                       json(before + "\xf0\x9f\x98\x80\xc3\xa9" + behind)))
          << pad;
      EXPECT_TRUE(is_unusable(json(before + "\\ud83d" + behind))) << pad;
      EXPECT_TRUE(is_unusable(json(before + "\xf0\x9f\x98" + behind))) << pad;
    }
  }
}

TEST(JsonBody, IsNormalisedOnlyIfAskedFor) {
  const SampleRequest composed = json("{\"n\xc3\xa9\":\"\xc3\xa9\"}");
  const SampleRequest decomposed = json("{\"ne\\u0301\":\"e\xcc\x81\"}");
  FingerprintOptions nfc;
  nfc.nfc = true;
  EXPECT_TRUE(differ(composed, decomposed));
  EXPECT_TRUE(same(composed, decomposed, nfc));
  const SampleRequest both = json("{\"\xc3\xa9\":1,\"e\xcc\x81\":2}");
  EXPECT_FALSE(is_unusable(both));
  EXPECT_TRUE(is_unusable(both, nfc));
  // The sort order is that of the normalised names.
  EXPECT_TRUE(same(json("{\"e\\u0301\":1,\"f\":2,\"\\u00e8\":3}"),
                   json("{\"\\u00e8\":3,\"\\u00e9\":1,\"f\":2}"), nfc));
  nfc.ignore = {"/e\xcc\x81"};
  EXPECT_TRUE(same(json("{\"\xc3\xa9\":1}"), json("{}"), nfc));
}

TEST(JsonIgnore, LeavesOutWhatItNamesAndNothingElse) {
  const auto options = ignoring({"/sent_at", "/meta/sentAt", "/a~1b", "/c~0d", "/list/1"});
  EXPECT_TRUE(
      same(json(R"({"x":1,"sent_at":"a"})"), json(R"({"x":1,"sent_at":{"b":[]}})"), options));
  EXPECT_TRUE(same(json(R"({"x":1,"sent_at":"a"})"), json(R"({"x":1})"), options));
  EXPECT_TRUE(differ(json(R"({"x":1,"sent_at":"a"})"), json(R"({"x":2,"sent_at":"a"})"), options));
  EXPECT_TRUE(same(json(R"({"meta":{"sentAt":1,"k":2}})"), json(R"({"meta":{"k":2,"sentAt":9}})"),
                   options));
  EXPECT_TRUE(differ(json(R"({"meta":{"sentAt":1,"k":2}})"), json(R"({"meta":{"sentAt":1,"k":3}})"),
                     options));
  EXPECT_TRUE(differ(json(R"({"meta":{"sentAt":1}})"), json(R"({"sentAt":1})"), options));
  EXPECT_TRUE(differ(json(R"({"n":{"sent_at":1}})"), json(R"({"n":{"sent_at":2}})"), options));
  EXPECT_TRUE(same(json(R"({"a/b":1,"c~d":2})"), json("{}"), options));
  EXPECT_TRUE(same(json(R"({"list":[1,2,3]})"), json(R"({"list":[1,{},3]})"), options));
  EXPECT_TRUE(differ(json(R"({"list":[1,2,3]})"), json(R"({"list":[2,2,3]})"), options));
  EXPECT_TRUE(differ(json(R"({"list":[1,2,3]})"), json(R"({"list":[1,2,4]})"), options));
  EXPECT_TRUE(same(json(R"({"list":{"1":1}})"), json(R"({"list":{}})"), options));
  EXPECT_TRUE(differ(json(R"({"list":[]})"), json(R"({"list":{}})"), options));
  EXPECT_TRUE(differ(json(R"([1])"), json(R"([2])"), options));
  EXPECT_TRUE(differ(json(R"({"meta":null})"), json(R"({"meta":{}})"), options));
}

TEST(JsonOnly, LooksAtTheNamedMembersAlone) {
  const auto options = using_only({"/amount", "/to/iban", "/lines/0"});
  const SampleRequest plain = json(R"({"amount":5,"to":{"iban":"X"},"lines":[1,2]})");
  EXPECT_TRUE(same(plain, json(R"({"amount":5.0,"to":{"iban":"X","n":1},"lines":[1,9,9],"z":0})"),
                   options));
  EXPECT_TRUE(differ(plain, json(R"({"amount":6,"to":{"iban":"X"},"lines":[1,2]})"), options));
  EXPECT_TRUE(differ(plain, json(R"({"amount":5,"to":{"iban":"Y"},"lines":[1,2]})"), options));
  EXPECT_TRUE(differ(plain, json(R"({"amount":5,"to":{"iban":"X"},"lines":[2,2]})"), options));
  EXPECT_TRUE(differ(plain, json(R"({"amount":5,"to":{"iban":"X"},"lines":[]})"), options));
  EXPECT_TRUE(differ(json(R"({"amount":null})"), json("{}"), options));
  EXPECT_TRUE(same(json("{}"), json("[]"), options));
  EXPECT_TRUE(differ(json(R"({"amount":1})"), json(R"({"to":{"iban":1}})"), options));
}

TEST(JsonOnly, StillIgnoresInside) {
  auto options = using_only({"/order"});
  options.ignore = {"/order/sent_at"};
  EXPECT_TRUE(
      same(json(R"({"order":{"a":1,"sent_at":1}})"), json(R"({"order":{"a":1}})"), options));
  EXPECT_TRUE(differ(json(R"({"order":{"a":1}})"), json(R"({"order":{"a":2}})"), options));
}

TEST(JsonDefaults, StandInForAbsentMembersButNotForNull) {
  const auto options = defaulting({{"/currency", "\"usd\""}, {"/opt/n", "1.0"}});
  EXPECT_TRUE(same(json(R"({"amount":5})"), json(R"({"amount":5,"currency":"usd"})"), options));
  EXPECT_TRUE(differ(json(R"({"amount":5})"), json(R"({"amount":5,"currency":"eur"})"), options));
  EXPECT_TRUE(differ(json(R"({"amount":5})"), json(R"({"amount":5,"currency":null})"), options));
  EXPECT_TRUE(same(json(R"({"opt":{}})"), json(R"({"opt":{"n":1}})"), options));
  EXPECT_TRUE(differ(json("{}"), json(R"({"opt":{"n":1}})"), options));
  EXPECT_TRUE(differ(json("[]"), json(R"(["usd"])"), options));
  EXPECT_TRUE(same(json(R"({"b":1,"d":2})"), json(R"({"d":2,"currency":"usd","b":1})"), options));
}

TEST(JsonDefaults, ReachIntoOtherDefaultsAndIntoOnly) {
  auto options = defaulting({{"/a", R"({"x":1})"}, {"/a/b", "2"}, {"/c", "3"}});
  EXPECT_TRUE(same(json("{}"), json(R"({"c":3,"a":{"b":2,"x":1}})"), options));
  EXPECT_TRUE(same(json(R"({"a":{}})"), json(R"({"a":{"b":2}})"), options));
  options.ignore = {"/c"};
  EXPECT_TRUE(same(json(R"({"a":{}})"), json(R"({"a":{},"c":4})"), options));
  options.ignore = {};
  options.only = {"/a/b", "/c"};
  EXPECT_TRUE(same(json("{}"), json(R"({"a":{"b":2},"c":3,"z":1})"), options));
  EXPECT_TRUE(differ(json("{}"), json(R"({"a":{"b":3},"c":3})"), options));
  EXPECT_TRUE(differ(json("{}"), json(R"({"a":[]})"), options));
}

}  // namespace
}  // namespace einmal
