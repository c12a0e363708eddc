#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/gateway.hpp"

/// Field cases C09 (how a key travels) and C10 (no key, blank key, anonymous callers), over raw
/// sockets so that every byte is the test's.

namespace einmal::test {
namespace {

class Keys : public GatewayTest {
 protected:
  /// Sends an order whose key lines are given as they go on the wire.
  HttpAnswer send_with(const std::string& key_lines) const {
    RawClient client(gateway_->port());
    client.send("POST /orders HTTP/1.1\r\nHost: shop.test\r\nX-Caller: alice\r\n" + key_lines +
                "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
    return client.read_answer();
  }
  HttpAnswer send_clean(const std::string& key) const { return send(order(key, "{}")); }
};

constexpr auto K = "8e03978e-40d5-43e8-bc93-6894a57f9324";

TEST_F(Keys, that_cannot_be_one_key_are_refused_and_the_key_stays_free) {
  open();
  const std::string k = K;
  int n = 0;
  for (const std::string& lines : std::vector<std::string>{
           "Idempotency-Key: @\r\nIdempotency-Key: @\r\n",
           "Idempotency-Key: @\r\nIdempotency-Key: other\r\n",
           "Idempotency-Key: @\r\nidempotency-key: @\r\n",
           "Idempotency-Key: @, @\r\n",
           "Idempotency-Key: \"@\", \"@\"\r\n",
           "Idempotency-Key: \"@\r\n",
           "Idempotency-Key: @\"\r\n",
           "Idempotency-Key: \"\"\r\n",
           "Idempotency-Key: a b\r\n",
           "Idempotency-Key: \"a b\"\r\n",
           "Idempotency-Key: @;\r\n",
           "Idempotency-Key: @\\\r\n",
           "Idempotency-Key: \xC3\xA9@\r\n",
           "Idempotency-Key: \"\xFF\"\r\n",
           "Idempotency-Key: ?1\r\nIdempotency-Key:\r\n",
           "Idempotency-Key:\r\n",
           "Idempotency-Key:    \t \r\n",
           "Idempotency-Key: " + std::string(256, 'k') + "\r\n",
           "Idempotency-Key: " + std::string(8000, 'k') + "\r\n",
       }) {
    auto with_key = lines;
    const auto key = k + std::to_string(++n);
    for (auto at = with_key.find('@'); at != std::string::npos; at = with_key.find('@'))
      with_key.replace(at, 1, key);
    const auto before = upstream_.begun();
    EXPECT_EQ(in_words(send_with(with_key)), "400 rejected key-invalid") << lines.substr(0, 60);
    EXPECT_EQ(upstream_.begun(), before);
    EXPECT_EQ(in_words(send_clean(key)), "201 executed");
    EXPECT_EQ(upstream_.effects(key), 1u);
  }
}

TEST_F(Keys, folded_over_two_lines_or_with_control_characters_never_reach_the_upstream) {
  open();
  for (const std::string lines : {"Idempotency-Key: a\r\n b\r\n", "Idempotency-Key:\r\n a\r\n",
                                  "Idempotency-Key: a\x01\r\n", "Idempotency-Key: a\x7f\r\n"}) {
    EXPECT_EQ(send_with(lines).status, 400) << lines;
  }
  EXPECT_EQ(upstream_.begun(), 0u);
  EXPECT_EQ(in_words(send_clean("a")), "201 executed");
}

TEST_F(Keys, in_other_spellings_are_the_same_key) {
  open();
  const std::string k = K;
  upstream_.next(Play().answer(201, "one"));
  EXPECT_EQ(in_words(send_clean(k)), "201 executed");
  for (const std::string& lines : std::vector<std::string>{
           "idempotency-key: " + k + "\r\n", "IDEMPOTENCY-KEY:" + k + "\r\n",
           "Idempotency-Key: \t " + k + " \t\r\n", "Idempotency-Key: \"" + k + "\"\r\n",
           "Idempotency-Key: \"" + k + "\";a=1;b\r\n",
           "Idempotency-Key: \"" + k + "\"; x=\"y\"\r\n"}) {
    const auto answer = send_with(lines);
    EXPECT_EQ(in_words(answer), "201 replayed") << lines;
    EXPECT_EQ(answer.body, "one");
  }
  EXPECT_EQ(upstream_.count(), 1u);
}

TEST_F(Keys, escaped_in_the_quoted_form_are_what_they_say) {
  open();
  EXPECT_EQ(in_words(send_with("Idempotency-Key: \"a\\\"b\\\\c\"\r\n")), "201 executed");
  EXPECT_EQ(in_words(send_with("Idempotency-Key: \"a\\\"b\\\\c\"\r\n")), "201 replayed");
  EXPECT_EQ(in_words(send_with("Idempotency-Key: \"a\\b\"\r\n")), "400 rejected key-invalid");
}

TEST_F(Keys, of_any_allowed_length_work_and_the_upstream_sees_the_field_as_it_came) {
  open();
  const std::string longest(255, 'k');
  EXPECT_EQ(in_words(send_clean(longest)), "201 executed");
  EXPECT_EQ(in_words(send_clean(longest)), "201 replayed");
  EXPECT_EQ(in_words(send_clean("0")), "201 executed");
  EXPECT_EQ(in_words(send_with("Idempotency-Key: \"q\"\r\n")), "201 executed");
  EXPECT_EQ(upstream_.requests().back().header("Idempotency-Key"), "\"q\"");
}

TEST_F(Keys, missing_on_an_operation_that_requires_one_are_refused) {
  open();
  EXPECT_EQ(in_words(send_with("")), "400 rejected key-missing");
  EXPECT_EQ(upstream_.begun(), 0u);
}

TEST_F(Keys, missing_on_an_operation_where_they_are_optional_means_no_protection_and_no_sharing) {
  open({.defaults = "key = \"optional\"\n"});
  for (int i = 0; i < 2; ++i) {
    const auto answer = send_with("");
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer.header("Idempotent-Replayed"), "");
    EXPECT_NE(status_of(answer), "replayed");
  }
  EXPECT_EQ(upstream_.count(), 2u);
  EXPECT_EQ(in_words(send_with("Idempotency-Key:\r\n")), "400 rejected key-invalid");
  EXPECT_EQ(in_words(send_with("Idempotency-Key:  \r\n")), "400 rejected key-invalid");
  EXPECT_EQ(upstream_.count(), 2u);
}

class Callers : public GatewayTest {
 protected:
  HttpAnswer as(const std::string& caller_lines, const std::string& key) const {
    RawClient client(gateway_->port());
    client.send("POST /orders HTTP/1.1\r\nHost: a\r\n" + caller_lines + "Idempotency-Key: " + key +
                "\r\nContent-Length: 2\r\n\r\n{}");
    return client.read_answer();
  }
};

TEST_F(Callers, are_kept_apart_and_anonymous_ones_are_refused_whatever_the_key) {
  open();
  upstream_.next(Play().answer(201, "private to alice"));
  EXPECT_EQ(in_words(as("X-Caller: alice\r\n", "K")), "201 executed");
  const auto bob = as("X-Caller: bob\r\n", "K");
  EXPECT_EQ(in_words(bob), "201 executed");
  EXPECT_THAT(bob.body, ::testing::Not(::testing::HasSubstr("alice")));
  const auto known = as("", "K");
  const auto unknown = as("", "never-seen");
  EXPECT_EQ(in_words(known), "403 rejected caller-missing");
  EXPECT_EQ(known.body, unknown.body);
  EXPECT_EQ(in_words(as("X-Caller:\r\n", "K")), "403 rejected caller-missing");
  EXPECT_EQ(in_words(as("X-Caller: alice\r\nX-Caller: bob\r\n", "K")),
            "403 rejected caller-missing");
  EXPECT_EQ(upstream_.count(), 2u);
}

TEST_F(Callers, cannot_be_forged_from_a_peer_that_is_not_trusted) {
  open({.caller_lines = "trusted_peers = [\"192.0.2.0/24\"]\n"});
  EXPECT_EQ(in_words(as("X-Caller: alice\r\n", "K")), "403 rejected caller-missing");
  EXPECT_EQ(upstream_.begun(), 0u);
}

TEST_F(Callers, fixed_by_the_operator_share_one_scope_knowingly) {
  open({.caller = "fixed:everybody"});
  EXPECT_EQ(in_words(as("", "K")), "201 executed");
  EXPECT_EQ(in_words(as("X-Caller: bob\r\n", "K")), "201 replayed");
}

TEST_F(Callers, cannot_inject_what_is_internal) {
  open();
  const std::string forged =
      "X-Caller: alice\r\nEinmal-Fencing-Token: 9\r\nEinmal_Fencing_Token: 9\r\n"
      "Einmal-Operation-Id: x\r\nX_Caller: bob\r\nIdempotent-Replayed: true\r\n";
  EXPECT_EQ(in_words(as(forged, "K")), "201 executed");
  const auto seen = upstream_.requests().front();
  EXPECT_EQ(seen.count("Einmal-Fencing-Token"), 1u);
  EXPECT_NE(seen.header("Einmal-Fencing-Token"), "9");
  EXPECT_EQ(seen.count("Einmal_Fencing_Token"), 0u);
  EXPECT_NE(seen.header("Einmal-Operation-Id"), "x");
  EXPECT_EQ(seen.count("X_Caller"), 0u);
}

}  // namespace
}  // namespace einmal::test
