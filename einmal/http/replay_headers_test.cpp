#include "einmal/http/replay_headers.hpp"

#include <gtest/gtest.h>

#include "einmal/http/message_parser.hpp"
#include "einmal/http/transcript.hpp"

namespace einmal::http {
namespace {

HeaderLines answer_lines(const std::string& lines) {
  ResponseParser parser;
  parser.reset("POST");
  const std::string bytes = "HTTP/1.1 201 Created\r\n" + lines + "Content-Length: 0\r\n\r\n";
  EXPECT_EQ(parser.feed(bytes).step, Step::head);
  return parser.head().headers;
}

// Repeated lines, commas, empty and long values, bytes above 7F; what goes is wholly gone.
TEST(ReplayHeaders, keep_lines_order_and_bytes_or_nothing_of_a_line_C15) {
  const std::string kept =
      "Location: /orders/1\r\n"
      "Content-Disposition: attachment; filename=\"a,b.txt\"\r\n"
      "Link: </a>; rel=next, </b>\r\n"
      "ETag: W/\"x,y\"\r\n"
      "link: </c>\r\n"
      "Vary: Accept\r\n"
      "X-Empty: \r\n"
      "Vary: Origin, Accept-Language\r\n"
      "X-Long: " +
      std::string(6000, 'x') +
      "\r\n"
      "X-High: \x80\xff caf\xe9\r\n"
      "Content-Type: text/plain\r\n"
      "Content-Encoding: gzip\r\n"
      "Expires: 0\r\n"
      "Access-Control-Allow-Origin: https://a.example\r\n";
  const std::string dropped =
      "Set-Cookie: a=b; Expires=Sun, 06 Nov 1994 08:49:37 GMT\r\nset-cookie: c=d\r\n"
      "Set-Cookie2: e\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nx-hop: 2\r\n"
      "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nKeep-Alive: timeout=5\r\nAge: 3\r\nAlt-Svc: clear\r\n"
      "Server-Timing: db;dur=1\r\nWWW-Authenticate: Basic\r\nAuthentication-Info: x\r\n"
      "Retry-After: 3\r\nTrailer: T\r\nTE: x\r\nUpgrade: h2c\r\nProxy-Authenticate: Basic\r\n"
      "Proxy-Connection: close\r\nEinmal-Outcome: completed\r\nEinmal-Anything: x\r\n"
      "Idempotency-Status: replayed\r\nIdempotency-Anything: x\r\nIdempotent-Replayed: true\r\n"
      "Einmal_Outcome: completed\r\n";
  const auto lines = answer_lines(dropped + kept + dropped);
  EXPECT_EQ(serialize(stored_lines(lines, {})), kept);
  EXPECT_EQ(parse_stored_headers(kept), stored_lines(lines, {}));
}

TEST(ReplayHeaders, leave_out_what_the_operator_denies) {
  const auto lines = answer_lines("X-Request-Id: 1\r\nx-request-id: 2\r\nX-Request: 3\r\n");
  EXPECT_EQ(serialize(stored_lines(lines, {"X-Request-ID"})), "X-Request: 3\r\n");
}

// Describing headers stay with the bytes they describe, whatever the first client negotiated.
TEST(ReplayHeaders, store_the_coding_with_the_coded_bytes_C16) {
  const auto lines = answer_lines("Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n");
  const auto stored = stored_lines(lines, {});
  EXPECT_EQ(stored.first("Content-Encoding"), "gzip");
  EXPECT_EQ(stored.first("Vary"), "Accept-Encoding");
  EXPECT_FALSE(stored.has("Content-Length"));
  EXPECT_FALSE(stored.has("Transfer-Encoding"));
}

TEST(ReplayHeaders, keep_what_a_connection_line_may_not_name_away) {
  HeaderLines lines{{"Host", "h"},
                    {"Connection", "host, content-type, Idempotency-Key, X"},
                    {"Content-Type", "a"},
                    {"idempotency-key", "K"},
                    {"x", "1"},
                    {"Connection", "Y"},
                    {"y", "2"},
                    {"Z", "3"}};
  remove_hop_by_hop(lines, KeyNames{});
  EXPECT_EQ(
      lines,
      (HeaderLines{{"Host", "h"}, {"Content-Type", "a"}, {"idempotency-key", "K"}, {"Z", "3"}}));
}

TEST(UpstreamLines, lose_einmals_own_in_either_spelling) {
  HeaderLines lines{{"Einmal-Fencing-Token", "9"},
                    {"EINMAL_Operation_Id", "x"},
                    {"einmal_", "x"},
                    {"Einmalig", "stays"},
                    {"Host", "h"},
                    {"Content-Length", "3"}};
  prepare_for_upstream(lines, {});
  EXPECT_EQ(lines, (HeaderLines{{"Einmalig", "stays"}, {"Host", "h"}, {"Content-Length", "3"}}));
}

TEST(UpstreamLines, name_the_caller_only_if_a_trusted_peer_said_so_and_in_one_spelling) {
  const HeaderLines sent{{"X-Caller", "a"}, {"X_Caller", "b"}, {"x_CALLER", "c"}};
  UpstreamRules rules;
  rules.caller_header = "X-Caller";
  auto lines = sent;
  prepare_for_upstream(lines, rules);
  EXPECT_TRUE(lines.empty());
  rules.caller_trusted = true;
  lines = sent;
  prepare_for_upstream(lines, rules);
  EXPECT_EQ(lines, (HeaderLines{{"X-Caller", "a"}}));
  rules.caller_header.reset();
  lines = sent;
  prepare_for_upstream(lines, rules);
  EXPECT_EQ(lines, sent);
}

TEST(UpstreamLines, lose_method_overrides_where_an_operation_matched) {
  const HeaderLines sent{{"X-HTTP-Method-Override", "DELETE"}, {"x_http_method_override", "DELETE"},
                         {"X-HTTP-Method", "DELETE"},          {"X-Method-Override", "DELETE"},
                         {"Expect", "100-continue"},           {"Accept-Encoding", "gzip"}};
  UpstreamRules rules;
  auto lines = sent;
  prepare_for_upstream(lines, rules);
  EXPECT_EQ(lines, sent);
  rules.matched = true;
  prepare_for_upstream(lines, rules);
  EXPECT_EQ(lines, (HeaderLines{{"Expect", "100-continue"}, {"Accept-Encoding", "gzip"}}));
  rules.keyed = true;
  prepare_for_upstream(lines, rules);
  EXPECT_EQ(lines, (HeaderLines{{"Accept-Encoding", "identity"}}));
}

TEST(ClientLines, hold_no_hop_and_nothing_that_only_einmal_may_say) {
  const HeaderLines sent{{"Connection", "X-Hop"},
                         {"X-Hop", "1"},
                         {"Einmal-Outcome", "failed"},
                         {"Idempotency-Status", "replayed"},
                         {"Idempotent-Replayed", "true"},
                         {"Set-Cookie", "a=b"},
                         {"Date", "d"}};
  auto keyed = sent, unkeyed = sent;
  prepare_for_client(keyed, true);
  EXPECT_EQ(keyed, (HeaderLines{{"Set-Cookie", "a=b"}, {"Date", "d"}}));
  prepare_for_client(unkeyed, false);
  EXPECT_EQ(unkeyed, (HeaderLines{{"Idempotency-Status", "replayed"},
                                  {"Idempotent-Replayed", "true"},
                                  {"Set-Cookie", "a=b"},
                                  {"Date", "d"}}));
}

TEST(TrailerLines, never_carry_a_key_a_caller_or_framing) {
  HeaderLines trailers{{"Idempotency-Key", "K"},
                       {"PayPal-Request-Id", "K"},
                       {"X_Caller", "a"},
                       {"Content-Length", "3"},
                       {"Content-Encoding", "x"},
                       {"Transfer-Encoding", "chunked"},
                       {"Host", "h"},
                       {"Authorization", "x"},
                       {"Einmal_Outcome", "x"},
                       {"Idempotency-Status", "x"},
                       {"Server-Timing", "x"},
                       {"Checksum", "1"}};
  prepare_trailers(trailers, {"Idempotency-Key", {"PayPal-Request-Id"}}, "X-Caller");
  EXPECT_EQ(trailers, (HeaderLines{{"Server-Timing", "x"}, {"Checksum", "1"}}));
}

TEST(Marks, stand_on_replays_alone) {
  const auto marks = [](Marks with) {
    HeaderLines lines;
    add_marks(lines, with);
    return serialize(lines);
  };
  using enum IdempotencyStatus;
  const WallTime expires(std::chrono::microseconds(784111777'999'999));
  EXPECT_EQ(marks({executed, std::nullopt, Effect::unknown}), "Idempotency-Status: executed\r\n");
  EXPECT_EQ(marks({replayed, expires, Effect::unknown}),
            "Idempotency-Status: replayed\r\nIdempotent-Replayed: true\r\n"
            "Idempotency-Effect: unknown\r\n"
            "Idempotency-Expires: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
  EXPECT_EQ(marks({resolved, std::nullopt, Effect::known}),
            "Idempotency-Status: resolved\r\nIdempotent-Replayed: true\r\n");
  EXPECT_EQ(marks({in_progress, std::nullopt, Effect::known}),
            "Idempotency-Status: in-progress\r\n");
}

}  // namespace
}  // namespace einmal::http
