#include "einmal/fingerprint/canonical_json.hpp"

#include <gtest/gtest.h>

#include <string>

#include "einmal/fingerprint/decimal.hpp"
#include "einmal/fingerprint/json_document.hpp"
#include "einmal/fingerprint/json_grammar.hpp"
#include "einmal/fingerprint/vectors_in_tests.hpp"

namespace einmal {
namespace {

std::string rfc8785(std::string_view text) {
  const auto result = canonical_json(text, JsonNumbers::ieee_double);
  return result ? *result : "refused: " + result.error().message;
}

std::string exact(std::string_view text) {
  const auto result = canonical_json(text, JsonNumbers::exact);
  return result ? *result : "refused: " + result.error().message;
}

std::optional<JsonFault> fault_of(std::string_view text) {
  JsonDocument document;
  return document.parse(text, false);
}

TEST(Rfc8785, MatchesThePublishedVectorsByteForByte) {
  for (const auto& input : vector_files("jcs", "jcs/input")) {
    const auto folder = input.parent_path().parent_path();
    const std::string output = rfc8785(read_file(input));
    EXPECT_EQ(output, read_file(folder / "output" / input.filename())) << input;
    std::string hex = read_file((folder / "outhex" / input.stem()).string() + ".txt");
    hex.erase(std::remove_if(hex.begin(), hex.end(), [](char c) { return std::isspace(c); }),
              hex.end());
    EXPECT_EQ(to_hex(output), hex) << input;
  }
}

TEST(Rfc8785, PrintsNumbersAsTheSamplesOfTheRfcsAppendixB) {
  const std::pair<const char*, const char*> samples[] = {
      {"-0.0", "0"},
      {"5e-324", "5e-324"},
      {"-5e-324", "-5e-324"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"9007199254740992", "9007199254740992"},
      {"-9007199254740992", "-9007199254740992"},
      {"295147905179352830000", "295147905179352830000"},
      {"9.999999999999997e22", "9.999999999999997e+22"},
      {"1e23", "1e+23"},
      {"1.0000000000000001e23", "1.0000000000000001e+23"},
      {"999999999999999700000", "999999999999999700000"},
      {"999999999999999900000", "999999999999999900000"},
      {"1e21", "1e+21"},
      {"9.999999999999997e-7", "9.999999999999997e-7"},
      {"0.000001", "0.000001"},
      {"333333333.3333332", "333333333.3333332"},
      {"333333333.33333325", "333333333.33333325"},
      {"333333333.3333333", "333333333.3333333"},
      {"333333333.3333334", "333333333.3333334"},
      {"333333333.33333343", "333333333.33333343"},
      {"-0.0000033333333333333333", "-0.0000033333333333333333"},
      {"1424953923781206.2", "1424953923781206.2"},
      {"1e-400", "0"},
      {"100", "100"},
      {"1.5", "1.5"},
      {"123e-20", "1.23e-18"},
  };
  for (const auto& [number, printed] : samples) EXPECT_EQ(rfc8785(number), printed) << number;
}

TEST(Rfc8785, RefusesANumberBeyondTheRangeOfADouble) {
  EXPECT_EQ(rfc8785("1e400"), "refused: JSON: a number beyond the range of a double");
  EXPECT_EQ(rfc8785("[-123456789e301]").substr(0, 7), "refused");
}

TEST(ExactJson, SpellsEqualNumbersAlikeAndKeepsDifferentOnesApart) {
  for (const char* one : {"1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "1.000000000000000000000"}) {
    EXPECT_EQ(exact(one), "1") << one;
  }
  for (const char* zero : {"0", "-0", "0.0", "-0.00e5", "0e999999999"}) {
    EXPECT_EQ(exact(zero), "0") << zero;
  }
  EXPECT_EQ(exact("1E2"), exact("100"));
  EXPECT_EQ(exact("-12.340"), "-1234e-2");
  EXPECT_EQ(exact("0.00120"), "12e-4");
  EXPECT_EQ(exact("9007199254740993"), "9007199254740993");
  EXPECT_EQ(exact("12345678901234567890"), "1234567890123456789e1");
  EXPECT_EQ(exact("0.10000000000000001"), "10000000000000001e-17");
  EXPECT_NE(exact("1e400"), exact("1e401"));
  EXPECT_EQ(exact("-1"), "-1");
}

TEST(ExactDecimal, HasOneZero) {
  for (const char* zero : {"0", "-0", "0.00", "-0e7", "0E-5"}) {
    const Decimal value = exact_decimal(zero);
    EXPECT_TRUE(value.is_zero() && !value.negative && value.exponent == 0) << zero;
  }
}

TEST(ExactJson, ItsTextIsItsOwnCanonicalForm) {
  for (const char* text : {R"({"b":[1.50,{"\u0061":null}],"a":"\u20ac\n\u0001"})", "[1e5,-0.0]"}) {
    const std::string once = exact(text);
    EXPECT_EQ(exact(once), once) << text;
  }
}

TEST(JsonNames, SortByUtf16UnitsNotByBytes) {
  // U+1F600 is the surrogate pair D83D DE00 and comes before U+FB33, unlike in UTF-8.
  EXPECT_EQ(exact("{\"\xef\xac\xb3\":1,\"\xf0\x9f\x98\x80\":2}"),
            "{\"\xf0\x9f\x98\x80\":2,\"\xef\xac\xb3\":1}");
  EXPECT_EQ(exact("{\"\xed\x9f\xbf\":1,\"\xf0\x90\x80\x80\":2}"),
            "{\"\xed\x9f\xbf\":1,\"\xf0\x90\x80\x80\":2}");
  EXPECT_EQ(exact("{\"\xee\x80\x80\":1,\"\xf4\x8f\xbf\xbf\":2}"),
            "{\"\xf4\x8f\xbf\xbf\":2,\"\xee\x80\x80\":1}");
  EXPECT_EQ(exact("{\"same eight \xee\x80\x80\":1,\"same eight \xf4\x8f\xbf\xbf\":2}"),
            "{\"same eight \xf4\x8f\xbf\xbf\":2,\"same eight \xee\x80\x80\":1}");
  EXPECT_EQ(exact(R"({"aa":1,"a":2,"":3,"a\u0000":4,"\u0000":5})"),
            R"({"":3,"\u0000":5,"a":2,"a\u0000":4,"aa":1})");
  EXPECT_EQ(exact(R"({"longer than eight b":1,"longer than eight a":2,"longer t":3})"),
            R"({"longer t":3,"longer than eight a":2,"longer than eight b":1})");
}

TEST(JsonNames, SortAlikeInSmallAndLargeObjects) {
  std::string large = "{", sorted = "{";
  for (int i = 999; i >= 100; --i) large += "\"" + std::to_string(i) + "\":0,";
  for (int i = 100; i <= 999; ++i) sorted += "\"" + std::to_string(i) + "\":0,";
  large.back() = '}';
  sorted.back() = '}';
  EXPECT_EQ(exact(large), sorted);
  EXPECT_EQ(exact(sorted), sorted);
}

TEST(JsonFaults, DuplicateNamesAreFoundAfterUnescapingAtAnyDepthAndNamedWithTheirPlace) {
  EXPECT_EQ(fault_of(R"({"a":1,"a":2})")->reason, "member name \"a\" twice at the top level");
  EXPECT_EQ(fault_of(R"({"amount":1,"\u0061mount":2})")->reason,
            "member name \"amount\" twice at the top level");
  EXPECT_EQ(fault_of(R"({"x":{"a":1,"b":0,"a":2}})")->reason, "member name \"a\" twice at /x");
  EXPECT_EQ(fault_of(R"([0,{"y/z":{}},[[],{"p~":[1,{"k":1,"k":2}]}]])")->reason,
            "member name \"k\" twice at /2/1/p~0/1");
  EXPECT_EQ(fault_of(R"({"y/z":{"":1,"":1}})")->reason, "member name \"\" twice at /y~1z");
  EXPECT_FALSE(fault_of(R"({"a":1,"A":2,"b":{"a":1}})"));
}

TEST(JsonFaults, FiftyThousandDuplicatesInOneObjectAreRefusedWithoutQuadraticWork) {
  std::string text = "{";
  for (int i = 0; i < 50'000; ++i) text += "\"amount\":" + std::to_string(i) + ",";
  text.back() = '}';
  EXPECT_EQ(fault_of(text)->reason, "member name \"amount\" twice at the top level");
  // Nearly equal long names make each comparison dear as well.
  text = "{";
  const std::string name(200, 'n');
  for (int i = 0; i < 50'000; ++i) text += "\"" + name + std::to_string(i % 49'999) + "\":0,";
  text.back() = '}';
  EXPECT_TRUE(fault_of(text));
}

TEST(JsonFaults, SayWhatAndWhereForAPerson) {
  const auto reason = [](std::string_view text) {
    const auto fault = fault_of(text);
    return fault && !fault->breaks_grammar ? fault->reason : "no such fault";
  };
  EXPECT_EQ(reason("\xef\xbb\xbf{}"), "byte order mark at byte 0");
  EXPECT_EQ(reason("[\"a\xff\"]"), "invalid UTF-8 at byte 3");
  EXPECT_EQ(reason("{\"\xed\xa0\x80\":1}"), "invalid UTF-8 at byte 2");
  EXPECT_EQ(reason(R"(["\ud800"])"), "lone surrogate at byte 2");
  EXPECT_EQ(reason(R"(["\ud800\u0041"])"), "lone surrogate at byte 2");
  EXPECT_EQ(reason(R"(["\udc00\ud800"])"), "lone surrogate at byte 2");
  EXPECT_EQ(reason(R"({"\uD834":0})"), "lone surrogate at byte 2");
  EXPECT_EQ(reason("[1e1000000001]"), "exponent beyond 10^9 at byte 1");
  EXPECT_EQ(reason("-1.5E-99999999999999999999"), "exponent beyond 10^9 at byte 0");
  EXPECT_EQ(reason("0e1000000001"), "exponent beyond 10^9 at byte 0");
  EXPECT_EQ(reason(std::string(65, '[') + std::string(65, ']')),
            "nesting deeper than 64 at byte 64");
}

TEST(JsonFaults, StandExactlyAtTheirBounds) {
  EXPECT_FALSE(fault_of(std::string(64, '[') + std::string(64, ']')));
  EXPECT_FALSE(fault_of("1e1000000000"));
  EXPECT_FALSE(fault_of("-0.1E-1000000000"));
  EXPECT_FALSE(fault_of("1e00000000000000000000001"));
  EXPECT_FALSE(fault_of("0.10000000001"));
  EXPECT_FALSE(fault_of("10000000001"));
  EXPECT_FALSE(fault_of("-10000000001"));
  std::string objects;
  for (int i = 0; i < 64; ++i) objects += "{\"a\":";
  EXPECT_FALSE(fault_of(objects + "1" + std::string(64, '}')));
  EXPECT_TRUE(fault_of("[" + objects + "1" + std::string(64, '}') + "]"));
}

TEST(JsonFaults, BrokenGrammarWinsOverEveryOtherFault) {
  for (const std::string text :
       {R"({"a":1,"a":2)", R"({"a":1,"a":2},)", "[\"\xff\"", R"(["\ud800",])", "1e9999999999x",
        "\xef\xbb\xbf{", "\xef\xbb\xbf", "", " ", "[01]", "[1.]", "[.5]", "[+1]", "{'a':1}",
        "[\"\t\"]", "NaN", "[\"\\x41\"]", R"(["\ud800\uZZZZ"])"}) {
    const auto fault = fault_of(text);
    ASSERT_TRUE(fault) << text;
    EXPECT_TRUE(fault->breaks_grammar) << text << ": " << fault->reason;
  }
  const auto deep = fault_of(std::string(100'000, '['));
  ASSERT_TRUE(deep);
  EXPECT_TRUE(deep->breaks_grammar);
}

TEST(JsonParsingSuite, AcceptsEveryYRefusesEveryNAndSurvivesEveryI) {
  for (const auto& file : vector_files("json-parsing", "json-parsing/test_parsing")) {
    const std::string name = file.filename().string();
    const std::string text = read_file(file);
    const auto fault = fault_of(text);
    const JsonScan scan = scan_json(text);
    EXPECT_EQ(scan.follows_grammar, !(fault && fault->breaks_grammar)) << name;
    if (name.rfind("y_", 0) == 0) {
      // Its two duplicate-name cases follow the grammar; the law refuses them for their meaning.
      const bool duplicate = name.find("duplicated_key") != std::string::npos;
      EXPECT_EQ(fault.has_value(), duplicate) << name << ": " << (fault ? fault->reason : "");
      EXPECT_TRUE(scan.follows_grammar) << name;
    } else if (name.rfind("n_", 0) == 0) {
      EXPECT_TRUE(fault) << name;
    }
  }
}

}  // namespace
}  // namespace einmal
