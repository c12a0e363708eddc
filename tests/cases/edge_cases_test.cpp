#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/gateway.hpp"

/// The HTTP edge over raw sockets, the client's side: shapes that two readers could read
/// differently are refused before anything is claimed or forwarded, and nothing behind them on the
/// connection is ever served. (The upstream's side is in outcome_cases_test.cpp.)

namespace einmal::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Edge : public GatewayTest {
 protected:
  /// A request whose lines after the first are given, with a second one hidden behind it.
  HttpAnswer send_raw(const std::string& lines_and_body,
                      const std::string& first_line = "POST /orders HTTP/1.1") {
    RawClient client(gateway_->port());
    client.send(first_line + "\r\n" + lines_and_body + smuggled_);
    auto answer = client.read_answer("POST");
    closed_ = client.read_to_end(patience).kind != Incoming::Kind::timeout;
    return answer;
  }
  bool closed_ = false;

  static constexpr auto common_ = "Host: shop.test\r\nX-Caller: alice\r\nIdempotency-Key: K\r\n";
  const std::string smuggled_ =
      "POST /orders HTTP/1.1\r\nHost: shop.test\r\nX-Caller: alice\r\nIdempotency-Key: smuggled\r\n"
      "Content-Length: 0\r\n\r\n";
};

TEST_F(Edge, shapes_with_two_readings_are_refused_and_what_follows_them_is_not_served) {
  open();
  const std::string c = common_;
  const std::string len = "Content-Length: 2\r\n";
  for (const std::string& shape : std::vector<std::string>{
           c + len + "X-Folded: a\r\n b\r\n\r\n{}",
           c + len + "X-Folded: a\r\n\tb\r\n\r\n{}",
           c + len + "X-A: b\nX-B: c\r\n\r\n{}",
           c + len + "X-A: b\rc\r\n\r\n{}",
           c + len + std::string("X-A: b\0c\r\n\r\n{}", 14),
           c + len + "X-A: b\x01\r\n\r\n{}",
           c + len + "X-A : b\r\n\r\n{}",
           c + len + ": b\r\n\r\n{}",
           c + len + "X-\xC3\xA9: b\r\n\r\n{}",
           c + len + "X A: b\r\n\r\n{}",
           c + len + len + "\r\n{}",
           c + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
           c + "Content-Length: 2, 2\r\n\r\n{}",
           c + "Content-Length: +2\r\n\r\n{}",
           c + "Content-Length: -2\r\n\r\n{}",
           c + "Content-Length: 0x2\r\n\r\n{}",
           c + "Content-Length: 2 2\r\n\r\n{}",
           c + "Content-Length:\r\n\r\n{}",
           c + "Content-Length: 99999999999999999999\r\n\r\n{}",
           c + len + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
           c + "Transfer-Encoding: chunked\r\nTransfer-Encoding: "
               "chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
           c + "Transfer-Encoding: chunked\r\n\r\nx\r\n{}\r\n0\r\n\r\n",
           c + "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
           c + "Transfer-Encoding: chunked\r\n\r\n2 \n{}\r\n0\r\n\r\n",
           c + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n",
           c + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n",
           c + c + len + "\r\n{}",
           std::string("X-Caller: alice\r\nIdempotency-Key: K\r\n") + len + "\r\n{}",
       }) {
    const auto answer = send_raw(shape);
    EXPECT_EQ(answer.status, 400) << shape;
    EXPECT_TRUE(closed_) << shape;
    EXPECT_EQ(upstream_.begun(), 0u) << shape;
  }
  EXPECT_EQ(in_words(send(order("K", "{}"))), "201 executed");
  EXPECT_EQ(in_words(send(order("smuggled", ""))), "201 executed");
}

TEST_F(Edge, transfer_codings_other_than_chunked_are_not_implemented) {
  open();
  for (const auto* coding : {"gzip", "gzip, chunked", "chunked, gzip", "identity", "xchunked",
                             "chunked;q=1", "\"chunked\""}) {
    const auto answer = send_raw(std::string(common_) + "Transfer-Encoding: " + coding +
                                 "\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
    EXPECT_THAT(answer.status, AnyOf(501, 400)) << coding;
    EXPECT_TRUE(closed_) << coding;
  }
  const auto old = send_raw(std::string(common_) + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                            "POST /orders HTTP/1.0");
  EXPECT_EQ(old.status, 400);
  EXPECT_EQ(upstream_.begun(), 0u);
}

TEST_F(Edge, first_lines_that_are_none_are_refused) {
  open();
  const std::string rest = std::string(common_) + "Content-Length: 2\r\n\r\n{}";
  for (const auto* line :
       {"POST /orders", "POST  /orders HTTP/1.1", "POST /orders HTTP/2.0",
        "POST /orders HTTP/1.1 x", "PO ST /orders HTTP/1.1", "POST orders HTTP/1.1",
        "\xFFOST /orders HTTP/1.1", "POST /or\tders HTTP/1.1", "GARBAGE"}) {
    EXPECT_THAT(send_raw(rest, line).status, AnyOf(400, 505)) << line;
    EXPECT_TRUE(closed_) << line;
  }
  EXPECT_EQ(upstream_.begun(), 0u);
}

TEST_F(Edge, limits_are_told_by_status_and_leave_no_claim) {
  open({.limits = "head = \"8KiB\"\n", .defaults = "max_request_body = \"1KiB\"\n"});
  const auto head = send_raw(std::string(common_) + "X-Long: " + std::string(10'000, 'l') +
                             "\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(head.status, 431);
  const auto announced = send(order("K", std::string(2000, 'x')));
  EXPECT_EQ(in_words(announced), "413 rejected body-too-large");
  RawClient chunked(gateway_->port());
  chunked.send("POST /orders HTTP/1.1\r\n" + std::string(common_) +
               "Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'x') +
               "\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.read_answer().status, 413);
  EXPECT_EQ(upstream_.begun(), 0u);
  EXPECT_EQ(in_words(send(order("K", std::string(1000, 'x')))), "201 executed");
}

TEST_F(Edge, harmless_shapes_are_served) {
  open();
  const std::string tail = "X-Caller: alice\r\nContent-Length: 2\r\nConnection: close\r\n";
  const auto first = send(order("K", "{}"));
  EXPECT_EQ(in_words(first), "201 executed");
  // The same request: absolute form, an empty line before it, chunks with extensions and trailers.
  for (const std::string& bytes : std::vector<std::string>{
           "POST http://shop.test/orders HTTP/1.1\r\nHost: shop.test\r\nIdempotency-Key: K\r\n" +
               tail + "Content-Type: application/json\r\n\r\n{}",
           "\r\nPOST /orders HTTP/1.1\r\nHost: shop.test\r\nIdempotency-Key: K\r\n" + tail +
               "Content-Type: application/json\r\n\r\n{}",
           "POST /orders HTTP/1.1\r\nHost: shop.test\r\nIdempotency-Key: K\r\nX-Caller: alice\r\n"
           "Content-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: "
           "Chunked\r\n\r\n"
           "1;ext=\"a;b\"\r\n{\r\n1\r\n}\r\n0\r\nIdempotency-Key: other\r\nX-Caller: "
           "bob\r\n\r\n"}) {
    RawClient client(gateway_->port());
    client.send(bytes);
    EXPECT_EQ(in_words(client.read_answer()), "201 replayed") << bytes;
  }
  EXPECT_EQ(upstream_.count(), 1u);
  EXPECT_EQ(upstream_.requests().front().target, "/orders");
}

TEST_F(Edge, methods_are_matched_as_they_are_spelled) {
  open();
  auto lower = order("K");
  lower.method = "post";
  lower.headers.emplace_back("Content-Length", std::to_string(lower.body.size()));
  EXPECT_EQ(status_of(send(lower)), "") << "not the operation";
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
}

TEST_F(Edge, several_requests_on_one_connection_are_answered_in_order) {
  open();
  RawClient client(gateway_->port());
  client.send(to_bytes(order("A")) + to_bytes(order("B")) + to_bytes(order("A")));
  EXPECT_EQ(in_words(client.read_answer()), "201 executed");
  EXPECT_EQ(in_words(client.read_answer()), "201 executed");
  EXPECT_EQ(in_words(client.read_answer()), "201 replayed");
  EXPECT_EQ(upstream_.count(), 2u);
}

TEST_F(Edge, clients_of_http_1_0_get_whole_answers_without_chunks) {
  open();
  upstream_.next(Play().send(
      "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
  for (const auto* expected : {"201 executed", "201 replayed"}) {
    RawClient client(gateway_->port());
    client.send(
        "POST /orders HTTP/1.0\r\nHost: shop.test\r\nX-Caller: alice\r\n"
        "Idempotency-Key: K\r\nContent-Length: 2\r\n\r\n{}");
    const auto answer = client.read_answer();
    EXPECT_EQ(in_words(answer), expected);
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.header("Transfer-Encoding"), "");
    EXPECT_EQ(client.read_some().kind, Incoming::Kind::end);
  }
}

TEST_F(Edge, an_expected_100_comes_only_after_caller_and_key_are_accepted) {
  open();
  const auto head = [](const std::string& key_line) {
    return "POST /orders HTTP/1.1\r\nHost: shop.test\r\nX-Caller: alice\r\n" + key_line +
           "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  };
  {
    RawClient client(gateway_->port());
    client.send(head("Idempotency-Key: \r\n"));
    const auto refused = client.read_answer();
    EXPECT_EQ(in_words(refused), "400 rejected key-invalid");
    EXPECT_TRUE(refused.interim.empty());
  }
  RawClient client(gateway_->port());
  client.send(head("Idempotency-Key: K\r\n"));
  EXPECT_THAT(client.read_some().bytes, HasSubstr("100 Continue"));
  EXPECT_EQ(upstream_.begun(), 0u);
  client.send("{}");
  EXPECT_EQ(in_words(client.read_answer()), "201 executed");
  EXPECT_EQ(upstream_.requests().front().count("Expect"), 0u);
}

TEST_F(Edge, a_slow_head_and_a_slow_body_are_given_up) {
  open({.limits = "head_time = \"300ms\"\nbody_time = \"300ms\"\n"});
  RawClient slow_head(gateway_->port());
  slow_head.send("POST /orders HTTP/1.1\r\nHost: shop");
  RawClient slow_body(gateway_->port());
  slow_body.send("POST /orders HTTP/1.1\r\n" + std::string(common_) +
                 "Content-Length: 10\r\n\r\n{");
  EXPECT_NE(slow_head.read_to_end().kind, Incoming::Kind::timeout);
  EXPECT_NE(slow_body.read_to_end().kind, Incoming::Kind::timeout);
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  EXPECT_EQ(upstream_.begun(), 1u);
}

class Unmatched : public GatewayTest {};

TEST_F(Unmatched, requests_pass_untouched_but_for_the_connections_own_lines) {
  open();
  upstream_.next(
      Play().answer(418, "teapot", {{"X-Answer", "a"}, {"X-Answer", "b"}, {"Set-Cookie", "c=1"}}));
  HttpRequest request;
  request.method = "PURGE";
  request.target = "//weird/%2e%2e/path?b=2&a=%41";
  request.headers = {{"X-One", "1"},    {"Cookie", "s=secret"},        {"Connection", "X-Hop"},
                     {"X-Hop", "gone"}, {"Einmal-Fencing-Token", "7"}, {"X-One", "2"}};
  request.body = std::string("\0\1\2", 3);
  const auto answer = send(request);
  EXPECT_EQ(answer.status, 418);
  EXPECT_EQ(answer.body, "teapot");
  EXPECT_EQ(answer.headers.all("X-Answer").size(), 2u);
  EXPECT_EQ(answer.header("Set-Cookie"), "c=1");
  EXPECT_EQ(status_of(answer), "");
  const auto seen = upstream_.requests().front();
  EXPECT_EQ(seen.method, "PURGE");
  EXPECT_EQ(seen.target, request.target);
  EXPECT_EQ(seen.body, request.body);
  EXPECT_EQ(seen.count("X-One"), 2u);
  EXPECT_EQ(seen.header("Cookie"), "s=secret");
  EXPECT_EQ(seen.count("X-Hop"), 0u);
  EXPECT_EQ(seen.count("Einmal-Fencing-Token"), 0u);
}

TEST_F(Unmatched, keyed_requests_pass_or_are_refused_as_configured) {
  open();
  auto request = order("K");
  request.target = "/elsewhere";
  EXPECT_EQ(send(request).status, 201);
  EXPECT_EQ(send(request).status, 201);
  EXPECT_EQ(upstream_.count(), 2u) << "nothing protects it";
  gateway_->kill();
  gateway_->setup().gateway = "unmatched_key = \"refuse\"\n";
  gateway_->restart();
  EXPECT_EQ(reason_of(send(request)), "not-idempotent-here");
  EXPECT_EQ(upstream_.count(), 2u);
}

TEST_F(Unmatched, head_interim_answers_and_upgrades_go_through) {
  open();
  HttpRequest head;
  head.method = "HEAD";
  head.target = "/x";
  upstream_.next(Play().send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"));
  const auto answer = send(head);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Content-Length"), "5");
  upstream_.next(
      Play().send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  const auto hinted = HttpClient(gateway_->port()).get("/x");
  EXPECT_EQ(hinted.body, "ok");
  EXPECT_EQ(hinted.interim.size(), 1u);
  upstream_.next(
      Play()
          .send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
                "first")
          .stall());
  RawClient client(gateway_->port());
  client.send("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
  EXPECT_EQ(client.read_answer("GET").status, 101);
  EXPECT_EQ(client.read_to_end(Milliseconds(200)).bytes, "first");
}

TEST_F(Unmatched, an_upstream_that_fails_is_told_as_502_or_504) {
  open({.upstream = "http://127.0.0.1:" + std::to_string(refused_port())});
  const auto answer = HttpClient(gateway_->port()).get("/x");
  EXPECT_EQ(answer.status, 502);
  EXPECT_EQ(reason_of(answer), "upstream-failed");
}

}  // namespace
}  // namespace einmal::test
