#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "support/gateway.hpp"

/// Field cases C17 (half a response), C18 (which failures mean that nothing happened) and C20
/// (hidden re-sending): what becomes of a key, and that the upstream never hears of a request
/// twice.

namespace einmal::test {
namespace {

using ::testing::HasSubstr;

constexpr auto uncertain = "504 uncertain outcome-uncertain";

class Outcomes : public GatewayTest {
 protected:
  std::string fresh_key() { return "K" + std::to_string(++count_); }

  /// The outcome of a request that meets `play`, and of two repeats.
  void expect_uncertain_and_never_run_again(const std::string& what, Play play) {
    const auto key = fresh_key();
    upstream_.next(std::move(play));
    const auto before = upstream_.begun();
    EXPECT_EQ(in_words(send(order(key))), uncertain) << what;
    EXPECT_EQ(in_words(send(order(key))), uncertain) << what;
    EXPECT_EQ(in_words(send(order(key))), uncertain) << what;
    EXPECT_EQ(upstream_.begun(), before + 1) << what;
  }

 private:
  int count_ = 0;
};

TEST_F(Outcomes, of_half_an_answer_are_uncertain_and_the_fragment_is_never_replayed) {
  open({.defaults = "answer_timeout = \"1s\"\n"});
  const std::string head = "HTTP/1.1 201 Created\r\n";
  const std::string some(400, 'x');
  expect_uncertain_and_never_run_again(
      "closed in the body", Play().send(head + "Content-Length: 1000\r\n\r\n" + some).close());
  expect_uncertain_and_never_run_again(
      "reset in the body", Play().send(head + "Content-Length: 1000\r\n\r\n" + some).reset());
  expect_uncertain_and_never_run_again(
      "no last chunk",
      Play().send(head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").close());
  expect_uncertain_and_never_run_again(
      "no end after the last chunk",
      Play().send(head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n").close());
  expect_uncertain_and_never_run_again(
      "a broken chunk size",
      Play().send(head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nxyz\r\n").close());
  expect_uncertain_and_never_run_again("closed in the head",
                                       Play().send(head + "Content-Le").close());
  expect_uncertain_and_never_run_again("closed without a byte", Play().close());
  expect_uncertain_and_never_run_again("reset without a byte", Play().reset());
  expect_uncertain_and_never_run_again(
      "close-delimited and reset", Play().send(head + "Connection: close\r\n\r\n" + some).reset());
  expect_uncertain_and_never_run_again(
      "stalls in the body", Play().send(head + "Content-Length: 1000\r\n\r\n" + some).stall());
  expect_uncertain_and_never_run_again("stalls before the head", Play().stall());
}

TEST_F(Outcomes, of_answers_that_two_readers_could_read_differently_are_uncertain) {
  open();
  const std::string head = "HTTP/1.1 201 Created\r\n";
  for (const std::string& answer : std::vector<std::string>{
           "garbage\r\n\r\n", "HTTP/2.0 201 Created\r\nContent-Length: 2\r\n\r\n{}",
           head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
           head + "Content-Length: 2, 2\r\n\r\n{}", head + "Content-Length: -2\r\n\r\n{}",
           head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
           head + "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
           head + "X-Folded: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
           "HTTP/1.1 999 What\r\nContent-Length: 2\r\n\r\n{}",
           "HTTP/1.0 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"}) {
    expect_uncertain_and_never_run_again(answer.substr(0, 70), Play().send(answer).close());
  }
}

TEST_F(Outcomes, of_a_body_delimited_by_a_clean_close_are_complete) {
  open();
  upstream_.next(
      Play().send("HTTP/1.1 201 Created\r\nConnection: close\r\n\r\nto the end").close());
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  const auto replay = send(order("K"));
  EXPECT_EQ(in_words(replay), "201 replayed");
  EXPECT_EQ(replay.body, "to the end");
}

TEST_F(Outcomes, of_interim_answers_wait_for_the_final_one) {
  open();
  upstream_.next(
      Play().send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                  "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"));
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  EXPECT_EQ(in_words(send(order("K"))), "201 replayed");
  expect_uncertain_and_never_run_again(
      "switching protocols",
      Play().send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"));
}

TEST_F(Outcomes, of_a_refused_connection_free_the_key) {
  open({.upstream = "http://127.0.0.1:" + std::to_string(refused_port())});
  const auto refused = send(order("K"));
  EXPECT_EQ(in_words(refused), "502 released upstream-unreachable");
  EXPECT_NE(refused.header("Retry-After"), "");
  gateway_->kill();
  gateway_->setup().upstream = upstream_.url();
  gateway_->restart();
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
}

TEST_F(Outcomes, of_a_name_that_does_not_resolve_free_the_key) {
  open({.upstream = "http://no-such-host.invalid:80"});
  EXPECT_EQ(in_words(send(order("K"))), "502 released upstream-unreachable");
  EXPECT_EQ(in_words(send(order("K"))), "502 released upstream-unreachable");
}

TEST_F(Outcomes, follow_the_status_table) {
  open();
  // What a status means by itself: released (runs again), final (replayed), or uncertain.
  const std::vector<int> final_ones{200, 201, 202, 204, 206, 301, 302, 303,
                                    304, 402, 409, 410, 418, 424, 500};
  const std::vector<int> released{307, 308, 400, 401, 403, 404, 405, 406, 407, 411, 412, 413, 414,
                                  415, 416, 417, 421, 422, 423, 425, 426, 428, 429, 431, 451, 501};
  const std::vector<int> unknown{408, 502, 503, 504, 505, 507, 511, 599};
  const auto play = [](int status) {
    return status == 204 || status == 304
               ? Play().send("HTTP/1.1 " + std::to_string(status) + " X\r\n\r\n")
               : Play().answer(status, "x");
  };
  for (const int status : final_ones) {
    const auto key = fresh_key();
    upstream_.next(play(status));
    const auto first = send(order(key));
    EXPECT_EQ(in_words(first), std::to_string(status) + " executed");
    const auto replay = send(order(key));
    EXPECT_EQ(in_words(replay), std::to_string(status) + " replayed");
    EXPECT_EQ(replay.body, first.body);
    EXPECT_EQ(replay.header("Idempotency-Effect"), status == 500 ? "unknown" : "");
    EXPECT_EQ(upstream_.effects(key), 1u) << status;
  }
  for (const int status : released) {
    const auto key = fresh_key();
    upstream_.next(play(status));
    const auto first = send(order(key));
    EXPECT_EQ(first.status, status);
    EXPECT_EQ(first.body, "x") << "a released answer is passed on unchanged";
    EXPECT_EQ(status_of(first), "released");
    EXPECT_EQ(in_words(send(order(key))), "201 executed");
    EXPECT_EQ(upstream_.effects(key), 2u) << status;
  }
  for (const int status : unknown) {
    const auto key = fresh_key();
    upstream_.next(play(status));
    const auto first = send(order(key));
    EXPECT_EQ(in_words(first), uncertain);
    EXPECT_EQ(first.member("upstream_status"), std::to_string(status));
    EXPECT_EQ(in_words(send(order(key))), uncertain);
    EXPECT_EQ(upstream_.effects(key), 1u) << status;
  }
}

TEST_F(Outcomes, that_the_upstream_declares_win_over_the_table) {
  open();
  const auto first_and_second = [&](int status, HeaderList headers) {
    const auto key = fresh_key();
    upstream_.next(Play().answer(status, "x", std::move(headers)));
    const auto first = send(order(key));
    EXPECT_EQ(first.header("Einmal-Outcome"), "");
    return std::pair(in_words(first), in_words(send(order(key))));
  };
  using P = std::pair<std::string, std::string>;
  EXPECT_EQ(first_and_second(503, {{"Einmal-Outcome", "released"}}),
            P("503 released", "201 executed"));
  EXPECT_EQ(first_and_second(400, {{"Einmal-Outcome", "failed"}}),
            P("400 executed", "400 replayed"));
  EXPECT_EQ(first_and_second(502, {{"Einmal-Outcome", "completed"}}),
            P("502 executed", "502 replayed"));
  EXPECT_EQ(first_and_second(201, {{"Einmal-Outcome", "released"}}),
            P("201 released", "201 executed"));
  EXPECT_EQ(first_and_second(201, {{"Einmal-Outcome", "uncertain"}}), P(uncertain, uncertain));
  EXPECT_EQ(first_and_second(201, {{"Einmal-Outcome", "perhaps"}}), P(uncertain, uncertain));
  EXPECT_EQ(
      first_and_second(201, {{"Einmal-Outcome", "completed"}, {"Einmal-Outcome", "completed"}}),
      P(uncertain, uncertain));
}

TEST_F(Outcomes, that_the_operator_configured_win_over_the_table) {
  open({.defaults = "outcomes = { 503 = \"released\", 404 = \"failed\" }\n"});
  upstream_.next(Play().answer(503, "busy", {{"Retry-After", "3"}}));
  const auto busy = send(order("K"));
  EXPECT_EQ(in_words(busy), "503 released");
  EXPECT_EQ(busy.header("Retry-After"), "3");
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  upstream_.next(Play().answer(404, "none"));
  EXPECT_EQ(in_words(send(order("K2"))), "404 executed");
  EXPECT_EQ(in_words(send(order("K2"))), "404 replayed");
}

TEST_F(Outcomes, of_redirects_are_never_followed_and_our_own_409_is_told_apart) {
  open();
  ScriptedUpstream elsewhere;
  upstream_.next(Play().answer(307, "", {{"Location", elsewhere.url() + "/orders"}}));
  EXPECT_EQ(send(order("K")).status, 307);
  EXPECT_EQ(elsewhere.connections(), 0u);
  upstream_.next(Play().answer(409, R"({"reason":"out of stock"})"));
  const auto own_logic = send(order("K2"));
  EXPECT_EQ(in_words(own_logic), "409 executed");
  EXPECT_EQ(reason_of(own_logic), "");
}

TEST_F(Outcomes, of_an_answer_that_comes_late_settle_the_record) {
  open({.defaults = "answer_timeout = \"500ms\"\n"});
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "late"));
  EXPECT_EQ(in_words(send(order("K"))), uncertain);
  gate->open();
  HttpAnswer answer;
  EXPECT_TRUE(eventually([&] {
    answer = send(order("K"));
    return answer.status == 201;
  }));
  EXPECT_EQ(in_words(answer), "201 replayed");
  EXPECT_EQ(answer.body, "late");
  EXPECT_EQ(upstream_.effects("K"), 1u);
}

class HiddenResend : public Outcomes {
 protected:
  /// One exchange that leaves a pooled connection behind.
  void warm_up() { EXPECT_EQ(in_words(send(order(fresh_key()))), "201 executed"); }
};

TEST_F(HiddenResend, never_happens_on_a_reused_connection) {
  open();
  const std::string head = "HTTP/1.1 201 Created\r\n";
  const auto big = std::string(200'000, 'x');
  warm_up();
  expect_uncertain_and_never_run_again("all read, reset without an answer", Play().reset());
  warm_up();
  expect_uncertain_and_never_run_again("all read, closed without an answer", Play().close());
  warm_up();
  expect_uncertain_and_never_run_again("reset after the status line", Play().send(head).reset());
  warm_up();
  expect_uncertain_and_never_run_again("reset after a part of the request",
                                       Play::after_reading_only(20).reset());
  warm_up();
  expect_uncertain_and_never_run_again(
      "408 and close",
      Play().send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n").close());
}

TEST_F(HiddenResend, is_not_needed_when_the_upstream_closed_before_our_first_byte) {
  open();
  for (int i = 0; i < 20; ++i) {
    // Answers, and closes without saying so.
    upstream_.next(Play().answer(201, "{}").close());
    const auto key = fresh_key();
    EXPECT_EQ(in_words(send(order(key))), "201 executed");
    EXPECT_EQ(in_words(send(order(key))), "201 replayed");
  }
  EXPECT_EQ(upstream_.begun(), 20u);
}

TEST_F(HiddenResend, and_bytes_left_over_on_a_connection_are_never_the_next_answer) {
  open();
  const auto extra = "HTTP/1.1 201 Created\r\nContent-Length: 6\r\n\r\nforged";
  upstream_.next(
      Play().send(std::string("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}") + extra));
  EXPECT_EQ(send(order("K1")).body, "{}");
  const auto next = send(order("K2"));
  EXPECT_EQ(in_words(next), "201 executed");
  EXPECT_THAT(next.body, ::testing::Not(HasSubstr("forged")));
  upstream_.next(Play().answer(204, "forged body"));
  EXPECT_EQ(send(order("K3")).status, 204);
  EXPECT_THAT(send(order("K4")).body, ::testing::Not(HasSubstr("forged")));
}

}  // namespace
}  // namespace einmal::test
