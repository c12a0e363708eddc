#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/gateway.hpp"

/// Field cases C05 (numbers that a double cannot hold) and C06 (duplicate member names), through
/// the gateway: what is the same request, what is another, what is refused before any claim.

namespace einmal::test {
namespace {

class JsonBodies : public GatewayTest {
 protected:
  std::string fresh_key() { return "K" + std::to_string(++count_); }
  /// First `a`, then `b` under the same key.
  std::string second_answer(const std::string& a, const std::string& b) {
    const auto key = fresh_key();
    EXPECT_EQ(in_words(send(order(key, a))), "201 executed") << a;
    return in_words(send(order(key, b)));
  }

 private:
  int count_ = 0;
};

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST_F(JsonBodies, with_different_numbers_are_different_requests) {
  open();
  const std::string long_number(399, '7');
  for (const auto& [a, b] : Pairs{{"9007199254740993", "9007199254740992"},
                                  {"12345678901234567890", "12345678901234567891"},
                                  {"0.1", "0.10000000000000001"},
                                  {"1e400", "1e401"},
                                  {"1", "-1"},
                                  {"1e-400", "0"},
                                  {long_number + "1", long_number + "2"}}) {
    for (const std::string shape : {R"({"account":%,"amount":5})", R"([[{"a":[%]}]])"}) {
      const auto with = [&](const std::string& number) {
        auto body = shape;
        return body.replace(body.find('%'), 1, number);
      };
      EXPECT_EQ(second_answer(with(a), with(b)), "422 mismatch key-reused") << a << " / " << b;
      EXPECT_EQ(second_answer(with(a), with(a)), "201 replayed") << a;
    }
  }
}

TEST_F(JsonBodies, with_equal_numbers_in_other_spellings_are_the_same_request) {
  open();
  for (const auto& [a, b] : Pairs{{"1", "1.0"},
                                  {"1", "1e0"},
                                  {"1", "10e-1"},
                                  {"1", "0.1E+1"},
                                  {"0", "-0"},
                                  {"0", "0e99"},
                                  {"100", "1E2"},
                                  {"9007199254740993", "9007199254740993.0"},
                                  {"1e400", "10e399"}}) {
    EXPECT_EQ(second_answer("{\"n\":" + a + "}", "{\"n\":" + b + "}"), "201 replayed")
        << a << " / " << b;
    EXPECT_EQ(second_answer("[[" + b + "]]", "[ [ " + a + " ] ]"), "201 replayed");
  }
}

TEST_F(JsonBodies, in_another_order_spacing_and_escaping_are_the_same_request) {
  open();
  for (const auto& [a, b] :
       Pairs{{R"({"a":1,"A":2})", R"({ "A" : 2 , "a" : 1 })"},
             {R"({"sku":"A-1"})", "\n{\"\\u0073ku\":\"\\u0041-1\"}\n"},
             {"{\"\xF0\x9F\x98\x80\":1,\"\xEF\xAC\xB3\":2}", R"({"\ufb33":2,"\ud83d\ude00":1})"},
             {R"({"path":"a/b"})", R"({"path":"a\/b"})"}}) {
    EXPECT_EQ(second_answer(a, b), "201 replayed") << a << " / " << b;
  }
}

TEST_F(JsonBodies, that_differ_in_meaning_are_other_requests) {
  open();
  for (const auto& [a, b] : Pairs{{R"({"a":null})", "{}"},
                                  {R"({"a":1})", R"({"a":"1"})"},
                                  {R"({"a":[1,2]})", R"({"a":[2,1]})"},
                                  {R"({"a":""})", R"({"a":" "})"},
                                  {R"({"a":true})", R"({"a":1})"},
                                  {R"({"a":1})", R"({"A":1})"}}) {
    EXPECT_EQ(second_answer(a, b), "422 mismatch key-reused") << a << " / " << b;
  }
}

TEST_F(JsonBodies, without_a_single_meaning_are_refused_and_the_key_stays_free) {
  open();
  std::string many = "{\"a\":0";
  for (int i = 0; i < 50'000; ++i) many += ",\"a\":" + std::to_string(i);
  many += "}";
  std::string deep = "1";
  for (int i = 0; i < 70; ++i) deep = "[" + deep + "]";
  for (const std::string& body :
       {std::string(R"({"amount":10,"amount":1000})"), std::string(R"({"a":{"b":{"c":1,"c":1}}})"),
        std::string(R"([{"amount":1,"\u0061mount":2}])"), many, deep,
        std::string(R"({"a":"\ud800"})"), std::string("{\"a\":\"\xFF\"}"),
        std::string("\xEF\xBB\xBF{}"), std::string(R"({"a":1e99999999999})")}) {
    const auto key = fresh_key();
    const auto before = upstream_.begun();
    EXPECT_EQ(in_words(send(order(key, body))), "400 rejected body-unusable") << body.substr(0, 60);
    EXPECT_EQ(upstream_.begun(), before);
    EXPECT_EQ(in_words(send(order(key, R"({"amount":1000})"))), "201 executed");
  }
}

TEST_F(JsonBodies, that_break_the_grammar_are_forwarded_and_compared_byte_by_byte) {
  open();
  EXPECT_EQ(second_answer("{\"a\":", "{\"a\":"), "201 replayed");
  EXPECT_EQ(second_answer("{\"a\":", "{\"a\": "), "422 mismatch key-reused");
  EXPECT_EQ(second_answer("", ""), "201 replayed");
  EXPECT_EQ(second_answer("", "{}"), "422 mismatch key-reused");
}

TEST_F(JsonBodies, keep_their_fingerprint_over_a_restart) {
  open();
  const auto a = order("K", R"({"n":1e2,"m":[1.50,"x"]})");
  EXPECT_EQ(in_words(send(a)), "201 executed");
  gateway_->kill();
  gateway_->restart();
  EXPECT_EQ(in_words(send(order("K", R"({"m":[1.5,"x"],"n":100})"))), "201 replayed");
}

}  // namespace
}  // namespace einmal::test
