#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/gateway.hpp"

/// Field cases C15 (header lines) and C16 (codings): a replay carries the lines and bytes of the
/// first answer, and what is dropped is wholly dropped.

namespace einmal::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Lines of one name, in order.
std::vector<std::string> lines(const HttpAnswer& answer, std::string_view name) {
  std::vector<std::string> values;
  for (const auto value : answer.headers.all(name)) values.emplace_back(value);
  return values;
}

/// The head without the first line and without what belongs to one transmission or to the replay.
std::vector<std::string> stable_lines(const HttpAnswer& answer) {
  std::vector<std::string> kept;
  for (const auto& line : answer.headers) {
    bool own = false;
    for (const auto* name : {"Date", "Connection", "Content-Length", "Idempotency-Status",
                             "Idempotent-Replayed", "Idempotency-Expires", "Cache-Control"})
      own |= http::iequals(line.name, name);
    if (!own) kept.push_back(std::string(line.name) + ": " + std::string(line.value));
  }
  return kept;
}

class Replays : public GatewayTest {};

TEST_F(Replays, carry_every_kept_header_line_in_its_order_and_to_the_byte) {
  open();
  const std::string high = "caf\xE9 \xC3\xA9";
  upstream_.next(Play().answer(201, "{}",
                               {{"Location", "/orders/7"},
                                {"Link", "</a>; rel=\"next\""},
                                {"Content-Disposition", "attachment; filename=\"a,b.txt\""},
                                {"Link", "</b>; rel=\"prev, last\""},
                                {"ETag", "W/\"x,y\""},
                                {"Vary", "Accept"},
                                {"Vary", "Origin"},
                                {"X-Empty", ""},
                                {"X-Long", std::string(6000, 'l')},
                                {"X-High", high},
                                {"x-lower-Case", "Kept As Is"}}));
  const auto first = send(order("K"));
  ASSERT_EQ(in_words(first), "201 executed");
  const auto kept = stable_lines(first);
  EXPECT_THAT(lines(first, "Link"), ElementsAre("</a>; rel=\"next\"", "</b>; rel=\"prev, last\""));
  EXPECT_EQ(first.header("X-High"), high);

  const auto expect_same = [&](const HttpAnswer& replay) {
    EXPECT_EQ(in_words(replay), "201 replayed");
    EXPECT_EQ(stable_lines(replay), kept);
    EXPECT_EQ(replay.header("Idempotent-Replayed"), "true");
    EXPECT_THAT(replay.header("Cache-Control"), HasSubstr("no-store"));
  };
  expect_same(send(order("K")));
  const auto second = another();
  expect_same(HttpClient(second->port()).send(order("K")));
  gateway_->kill();
  gateway_->restart();
  expect_same(send(order("K")));
}

TEST_F(Replays, carry_nothing_that_belongs_to_one_connection_person_or_moment) {
  open();
  upstream_.next(Play().answer(201, "{}",
                               {{"Set-Cookie", "a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT"},
                                {"Set-Cookie", "b=2"},
                                {"Connection", "X-Hop, keep-alive"},
                                {"X-Hop", "1"},
                                {"Keep-Alive", "timeout=5"},
                                {"Date", "Wed, 21 Oct 2020 07:28:00 GMT"},
                                {"Age", "7"},
                                {"Retry-After", "9"},
                                {"Server-Timing", "db;dur=53"},
                                {"Alt-Svc", "h3=\":443\""},
                                {"Idempotent-Replayed", "true"},
                                {"Idempotency-Status", "replayed"},
                                {"Idempotency-Expires", "never"},
                                {"Einmal-Secret", "x"},
                                {"X-Kept", "yes"}}));
  const auto first = send(order("K"));
  ASSERT_EQ(in_words(first), "201 executed");
  EXPECT_EQ(lines(first, "Idempotency-Status").size(), 1u);
  EXPECT_EQ(first.header("Idempotent-Replayed"), "");
  EXPECT_NE(first.header("Idempotency-Expires"), "never");
  EXPECT_EQ(lines(first, "Set-Cookie").size(), 2u) << "the first answer is the caller's own";
  EXPECT_EQ(first.header("X-Hop"), "");
  const auto replay = send(order("K"));
  ASSERT_EQ(in_words(replay), "201 replayed");
  EXPECT_EQ(replay.header("X-Kept"), "yes");
  for (const auto* name : {"Set-Cookie", "X-Hop", "Keep-Alive", "Age", "Retry-After",
                           "Server-Timing", "Alt-Svc", "Einmal-Secret"}) {
    EXPECT_THAT(lines(replay, name), ElementsAre()) << name;
  }
  EXPECT_NE(replay.header("Date"), "Wed, 21 Oct 2020 07:28:00 GMT");
  EXPECT_THAT(lines(replay, "Idempotent-Replayed"), ElementsAre("true"));
}

TEST_F(Replays, of_empty_binary_and_large_bodies_are_equal_to_the_byte) {
  open();
  std::string binary;
  for (int i = 0; i < 256 * 40; ++i) binary.push_back(static_cast<char>(i));
  int n = 0;
  for (const std::string& body : {std::string(), binary, std::string(900'000, 'x')}) {
    const auto key = "K" + std::to_string(++n);
    upstream_.next(Play().answer(200, body, {{"Content-Type", "application/octet-stream"}}));
    EXPECT_EQ(send(order(key)).body, body);
    const auto replay = send(order(key));
    EXPECT_EQ(in_words(replay), "200 replayed");
    EXPECT_EQ(replay.body, body);
  }
}

TEST_F(Replays, of_bodyless_answers_have_no_body_and_no_length) {
  open();
  upstream_.next(Play().send("HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n"));
  EXPECT_EQ(in_words(send(order("K"))), "204 executed");
  const auto replay = send(order("K"));
  EXPECT_EQ(in_words(replay), "204 replayed");
  EXPECT_EQ(replay.header("X-A"), "1");
  EXPECT_EQ(replay.header("Content-Length"), "");
}

TEST_F(Replays, of_chunked_answers_are_whole_and_drop_the_trailers) {
  open();
  upstream_.next(
      Play().send("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                  "5\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 11\r\n\r\n"));
  const auto first = send(order("K"));
  EXPECT_EQ(first.body, "hello world");
  const auto replay = send(order("K"));
  EXPECT_EQ(in_words(replay), "201 replayed");
  EXPECT_EQ(replay.body, "hello world");
  EXPECT_EQ(replay.header("Trailer"), "");
  EXPECT_TRUE(replay.trailers.empty());
}

TEST_F(Replays, are_the_same_request_whatever_codings_the_client_accepts) {
  open();
  EXPECT_EQ(in_words(send(order("K", "{}", {{"Accept-Encoding", "gzip"}}))), "201 executed");
  EXPECT_THAT(upstream_.requests().front().header("Accept-Encoding"), Not(HasSubstr("gzip")))
      << "keyed requests ask for identity coding";
  for (const auto* accepted : {"identity", "gzip", "br;q=1, gzip;q=0", "*"}) {
    const auto replay = send(order("K", "{}", {{"Accept-Encoding", accepted}}));
    EXPECT_EQ(in_words(replay), "201 replayed") << accepted;
    EXPECT_EQ(replay.body, "{\"id\":1}");
  }
  EXPECT_EQ(in_words(send(order("K", "{}"))), "201 replayed");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

/// "hello gzip" as gzip -n makes it.
const std::string gzipped(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x57\x48\xaf\xca\x2c\x00\x00"
    "\x19\x6a\xd2\xdf\x0a\x00\x00\x00",
    30);

TEST_F(Replays, of_coded_answers_are_coded_or_decoded_but_never_mislabelled) {
  open();
  upstream_.next(
      Play().answer(201, gzipped, {{"Content-Encoding", "gzip"}, {"Vary", "Accept-Encoding"}}));
  const auto first = send(order("K", "{}", {{"Accept-Encoding", "gzip"}}));
  ASSERT_EQ(in_words(first), "201 executed");
  EXPECT_EQ(first.body, gzipped);
  for (const auto* accepted : {"gzip", "identity", "br;q=1, gzip;q=0", ""}) {
    HeaderList headers;
    if (*accepted) headers.emplace_back("Accept-Encoding", accepted);
    const auto replay = send(order("K", "{}", headers));
    if (replay.header("Content-Encoding") == "gzip") {
      EXPECT_EQ(replay.body, gzipped) << accepted;
      EXPECT_THAT(std::string(accepted), ::testing::AnyOf("gzip", "")) << accepted;
    } else if (replay.status == 406) {
      EXPECT_EQ(reason_of(replay), "not-acceptable");
    } else {
      EXPECT_EQ(replay.body, "hello gzip") << accepted;
      EXPECT_EQ(replay.header("Content-Encoding"), "");
    }
  }
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

}  // namespace
}  // namespace einmal::test
