#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/gateway.hpp"

/// Field case C07: the whole target is part of the request, and what is spelled differently but
/// means the same is the same.

namespace einmal::test {
namespace {

class Targets : public GatewayTest {
 protected:
  void open_operations() {
    open({.operations = R"([[operation]]
name = "transfer"
match = "POST /transfer"
[[operation]]
name = "close"
match = "POST /accounts/{id}/close"
[[operation]]
name = "amend"
match = "PATCH /transfer"
[[operation]]
name = "slashed"
match = "POST /a/{name}"
)"});
  }
  static HttpRequest to(std::string target, std::string key, std::string method = "POST") {
    auto request = order(key);
    request.target = std::move(target);
    request.method = std::move(method);
    return request;
  }
  std::string second_answer(const std::string& first, const std::string& second) {
    const auto key = "K" + std::to_string(++count_);
    EXPECT_EQ(in_words(send(to(first, key))), "201 executed") << first;
    return in_words(send(to(second, key)));
  }

 private:
  int count_ = 0;
};

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST_F(Targets, that_differ_are_never_answered_by_each_others_result) {
  open_operations();
  for (const auto& [a, b] : Pairs{{"/transfer?to=acct-1", "/transfer?to=acct-2"},
                                  {"/transfer?to=acct-1", "/transfer"},
                                  {"/transfer?a=1&a=2", "/transfer?a=2&a=1"},
                                  {"/transfer?a=1", "/transfer?a=1&a=1"},
                                  {"/transfer?a=1", "/transfer?A=1"},
                                  {"/transfer?a=", "/transfer?a=1"},
                                  {"/accounts/1/close", "/accounts/2/close"},
                                  {"/a/x%2Fy", "/a/x%2fz"}}) {
    EXPECT_EQ(second_answer(a, b), "422 mismatch key-reused") << a << " / " << b;
  }
}

TEST_F(Targets, spelled_differently_are_the_same) {
  open_operations();
  for (const auto& [a, b] : Pairs{{"/transfer?a=1&b=2", "/transfer?b=2&a=1"},
                                  {"/transfer?x=%41", "/transfer?x=A"},
                                  {"/transfer?x=%7e", "/transfer?x=~"},
                                  {"/transfer", "/transfer/"},
                                  {"/transfer", "//transfer"},
                                  {"/transfer", "/%74ransfer"},
                                  {"/transfer", "/x/../transfer"},
                                  {"/transfer", "/./transfer"},
                                  {"/transfer", "/transfer?"},
                                  {"/a/x%2Fy", "/a/x%2fy"}}) {
    EXPECT_EQ(second_answer(a, b), "201 replayed") << a << " / " << b;
  }
}

TEST_F(Targets, go_to_the_upstream_as_they_came) {
  open_operations();
  send(to("//%74ransfer/?b=2&a=%41", "K"));
  EXPECT_EQ(upstream_.requests().front().target, "//%74ransfer/?b=2&a=%41");
}

TEST_F(Targets, of_another_operation_are_operations_of_their_own) {
  open_operations();
  EXPECT_EQ(in_words(send(to("/transfer", "K"))), "201 executed");
  EXPECT_EQ(in_words(send(to("/transfer", "K", "PATCH"))), "201 executed");
  EXPECT_EQ(in_words(send(to("/accounts/1/close", "K"))), "201 executed");
  EXPECT_EQ(upstream_.effects("K"), 3u);
}

TEST_F(Targets, with_an_escaped_slash_are_not_two_segments) {
  open_operations();
  // One segment, so the template matches; with a real slash it does not, and nothing is recorded.
  EXPECT_EQ(in_words(send(to("/a/x%2Fy", "K"))), "201 executed");
  EXPECT_EQ(status_of(send(to("/a/x/y", "K"))), "");
}

TEST_F(Targets, keep_their_meaning_over_a_restart) {
  open_operations();
  EXPECT_EQ(in_words(send(to("/transfer?a=1&b=2", "K"))), "201 executed");
  gateway_->kill();
  gateway_->restart();
  EXPECT_EQ(in_words(send(to("/transfer/?b=2&a=1", "K"))), "201 replayed");
}

TEST_F(Targets, are_not_the_only_thing_compared_but_noise_is_not) {
  open_operations();
  auto first = to("/transfer", "K");
  first.headers.emplace_back("User-Agent", "one");
  first.headers.emplace_back("traceparent",
                             "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(in_words(send(first)), "201 executed");
  auto again = to("/transfer", "K");
  again.headers.emplace_back("User-Agent", "two");
  again.headers.emplace_back("Accept", "text/plain");
  again.headers.emplace_back("X-Request-Id", "17");
  EXPECT_EQ(in_words(send(again)), "201 replayed");
}

TEST_F(Targets, on_another_host_are_another_request) {
  open_operations();
  auto first = to("/transfer", "K");
  first.headers.emplace_back("Host", "a.test");
  EXPECT_EQ(in_words(send(first)), "201 executed");
  auto other = to("/transfer", "K");
  other.headers.emplace_back("Host", "b.test");
  EXPECT_EQ(in_words(send(other)), "422 mismatch key-reused");
  auto spelled = to("/transfer", "K");
  spelled.headers.emplace_back("Host", "A.TEST:80");
  EXPECT_EQ(in_words(send(spelled)), "201 replayed");
}

TEST_F(Targets, under_method_override_headers_are_what_the_method_says) {
  open_operations();
  auto request = to("/transfer", "K");
  request.headers.emplace_back("X-HTTP-Method-Override", "DELETE");
  request.headers.emplace_back("X-Method-Override", "DELETE");
  request.headers.emplace_back("X-HTTP-Method", "DELETE");
  EXPECT_EQ(in_words(send(request)), "201 executed");
  const auto seen = upstream_.requests().front();
  EXPECT_EQ(seen.count("X-HTTP-Method-Override") + seen.count("X-Method-Override") +
                seen.count("X-HTTP-Method"),
            0u);
}

}  // namespace
}  // namespace einmal::test
