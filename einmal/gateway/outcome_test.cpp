#include "einmal/gateway/gateway_fixture.hpp"

/// What the upstream does, and what becomes of the key.

namespace einmal::test {
namespace {

using std::chrono::milliseconds;

class Outcomes : public GatewayTest {
 protected:
  /// The same request again: what a client that retries sees, without a second effect.
  void expect_uncertain(const HttpAnswer& answer) {
    EXPECT_EQ(answer.status, 504);
    EXPECT_EQ(answer.member("reason"), "outcome-uncertain");
    EXPECT_EQ(answer.member("retryable"), "true");
    EXPECT_EQ(answer.header("Idempotency-Status"), "uncertain");
  }
};

TEST_F(Outcomes, AnUpstreamThatRefusesConnectionsFreesTheKey) {
  config_.upstream.addresses.front().address.port = refused_port();
  start();
  const auto first = send_order("K1");
  EXPECT_EQ(first.status, 502);
  EXPECT_EQ(first.member("reason"), "upstream-unreachable");
  EXPECT_FALSE(first.header("Retry-After").empty());
  stop();
  config_.upstream.addresses.front().address.port = upstream_.port();
  start();
  EXPECT_EQ(send_order("K1").header("Idempotency-Status"), "executed");
}

TEST_F(Outcomes, AnUnknownNameFreesTheKey) {
  config_.upstream.addresses.front().address.host = "no-such-host.invalid";
  start();
  EXPECT_EQ(send_order("K1").member("reason"), "upstream-unreachable");
  EXPECT_EQ(send_order("K1").member("reason"), "upstream-unreachable");
}

TEST_F(Outcomes, AConnectionThatEndsWithoutAnAnswerIsUncertainAndNeverRepeated) {
  start();
  upstream_.always(Play().close());
  expect_uncertain(send_order("closed"));
  upstream_.always(Play().reset());
  expect_uncertain(send_order("reset"));
  upstream_.always(Play().answer(201));
  expect_uncertain(send_order("closed"));
  expect_uncertain(send_order("reset"));
  EXPECT_EQ(upstream_.effects("closed"), 1U);
  EXPECT_EQ(upstream_.effects("reset"), 1U);
}

TEST_F(Outcomes, HalfAnAnswerIsUncertain) {
  start();
  const std::string head = "HTTP/1.1 201 Created\r\n";
  const std::vector<std::string> halves = {
      head + "Content-Length: 1000\r\n\r\n" + std::string(400, 'x'),
      head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
      head + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
      head + "Content-Le",
      "HTTP/1.1 2",
      "garbage\r\n\r\n",
      head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
      head + "Transfer-Encoding: gzip\r\n\r\nabc",
      head + "X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
  };
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const auto key = "K" + std::to_string(i);
    upstream_.next(Play().send(halves[i]).close());
    expect_uncertain(send_order(key));
    expect_uncertain(send_order(key));
    EXPECT_EQ(upstream_.effects(key), 1U) << halves[i];
  }
}

TEST_F(Outcomes, ABodyThatTheEndOfTheConnectionEndsIsWholeOnlyWithAnOrderlyEnd) {
  start();
  const std::string answer = "HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\n\r\nall of it";
  upstream_.next(Play().send(answer).close());
  EXPECT_EQ(send_order("whole").body, "all of it");
  EXPECT_EQ(send_order("whole").header("Idempotency-Status"), "replayed");
  upstream_.next(Play().send(answer).reset());
  expect_uncertain(send_order("cut"));
}

TEST_F(Outcomes, FollowTheStatusTable) {
  start();
  for (const int status : {200, 201, 204, 303, 404, 402, 409, 500, 408, 502, 503, 504}) {
    const auto key = "S" + std::to_string(status);
    upstream_.always(Play().answer(status, status == 204 ? "" : "{}"));
    const auto first = send_order(key);
    const auto second = send_order(key);
    const auto effects = upstream_.effects(key);
    if (status == 404) {
      EXPECT_EQ(first.header("Idempotency-Status"), "released") << status;
      EXPECT_EQ(first.status, status);
      EXPECT_EQ(effects, 2U) << status;
    } else if (status == 408 || status > 500) {
      expect_uncertain(first);
      EXPECT_EQ(first.member("upstream_status"), std::to_string(status));
      expect_uncertain(second);
      EXPECT_EQ(effects, 1U) << status;
    } else {
      EXPECT_EQ(first.status, status);
      EXPECT_EQ(first.header("Idempotency-Status"), "executed") << status;
      EXPECT_EQ(second.status, status);
      EXPECT_EQ(second.header("Idempotency-Status"), "replayed") << status;
      EXPECT_EQ(second.header("Idempotency-Effect"), status == 500 ? "unknown" : "");
      EXPECT_EQ(effects, 1U) << status;
    }
  }
}

TEST_F(Outcomes, AreWhatTheUpstreamSaysBeforeWhatItsStatusSays) {
  operation().outcomes = {{503, DeclaredOutcome::released}, {402, DeclaredOutcome::released}};
  start();
  upstream_.always(Play().answer(503));
  EXPECT_EQ(send_order("configured").header("Idempotency-Status"), "released");
  upstream_.always(Play().answer(503, "", {{"Einmal-Outcome", "failed"}}));
  const auto failed = send_order("declared");
  EXPECT_EQ(failed.status, 503);
  EXPECT_EQ(failed.header("Einmal-Outcome"), "");
  EXPECT_EQ(send_order("declared").header("Idempotency-Status"), "replayed");
  upstream_.always(Play().answer(201, "", {{"Einmal-Outcome", "released"}}));
  EXPECT_EQ(send_order("released").header("Idempotency-Status"), "released");
  upstream_.always(Play().answer(201, "", {{"Einmal-Outcome", "perhaps"}}));
  expect_uncertain(send_order("nonsense"));
  upstream_.always(
      Play().answer(201, "", {{"Einmal-Outcome", "completed"}, {"Einmal-Outcome", "completed"}}));
  expect_uncertain(send_order("doubled"));
}

TEST_F(Outcomes, ASwitchOfProtocolsIsUncertain) {
  start();
  upstream_.next(
      Play().send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
                  "Connection: upgrade\r\n\r\n"));
  expect_uncertain(send_order("K1"));
}

TEST_F(Outcomes, InterimAnswersAreNotTheAnswer) {
  start();
  upstream_.next(Play()
                     .send("HTTP/1.1 100 Continue\r\n\r\n")
                     .send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
                     .answer(201, "final"));
  const auto answer = send_order("K1");
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "final");
  EXPECT_TRUE(answer.interim.empty());
}

TEST_F(Outcomes, AnAnswerThatComesTooLateStillSettlesTheRecord) {
  operation().times.answer = milliseconds(200);
  start();
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "late"));
  expect_uncertain(send_order("K1"));
  expect_uncertain(send_order("K1"));
  gate->open();
  HttpAnswer answer;
  EXPECT_TRUE(eventually([&] {
    answer = send_order("K1");
    return answer.status == 201;
  }));
  EXPECT_EQ(answer.body, "late");
  EXPECT_EQ(answer.header("Idempotency-Status"), "replayed");
  EXPECT_EQ(upstream_.effects("K1"), 1U);
}

TEST_F(Outcomes, ALateAnswerThatWasHalfHereSettlesTheRecord) {
  operation().times.answer = milliseconds(200);
  start();
  const auto gate = std::make_shared<Gate>();
  upstream_.next(
      Play().send("HTTP/1.1 201 Created\r\nContent-Length: 8\r\n\r\nhalf").wait(gate).send("half"));
  expect_uncertain(send_order("K1"));
  gate->open();
  EXPECT_TRUE(eventually([&] { return send_order("K1").body == "halfhalf"; }));
}

TEST_F(Outcomes, AnAnswerBeforeTheWholeRequestWasReadCounts) {
  operation().max_request_body = std::size_t{64} << 20;
  start();
  upstream_.next(Play::after_reading_only(1000).answer(402, "no").stall());
  const auto answer = send(order("K1", std::string(std::size_t{32} << 20, 'x')));
  EXPECT_EQ(answer.status, 402);
  EXPECT_EQ(answer.body, "no");
  EXPECT_EQ(answer.header("Idempotency-Status"), "executed");
}

TEST_F(Outcomes, BytesThatCameBeforeOurRequestAreNeverItsAnswer) {
  start();
  // The answer is followed by another one that nobody asked for.
  upstream_.next(Play()
                     .send("HTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\none"
                           "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nevil")
                     .stall());
  EXPECT_EQ(send_order("K1").body, "one");
  upstream_.always(Play().answer(201, "two"));
  EXPECT_EQ(send_order("K2").body, "two");
}

TEST_F(Outcomes, APooledConnectionThatWasClosedIsNotUsed) {
  start();
  upstream_.next(Play().answer(201, "one").close());
  EXPECT_EQ(send_order("K1").body, "one");
  upstream_.next(Play().answer(201, "two").reset());
  EXPECT_EQ(send_order("K2").body, "two");
  EXPECT_TRUE(eventually([&] { return upstream_.connections() == 2; }));
  EXPECT_EQ(send_order("K3").status, 201);
}

TEST_F(Outcomes, ConnectionsAreReusedWhereTheUpstreamKeepsThem) {
  start();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(send_order("K" + std::to_string(i)).status, 201);
  EXPECT_EQ(upstream_.connections(), 1U);
  stop();
  config_.upstream.reuse = UpstreamReuse::never;
  start();
  for (int i = 5; i < 8; ++i) EXPECT_EQ(send_order("K" + std::to_string(i)).status, 201);
  EXPECT_EQ(upstream_.connections(), 4U);
}

TEST_F(Outcomes, RedirectsAreNotFollowed) {
  start();
  upstream_.next(Play().answer(307, "", {{"Location", "http://192.0.2.1/elsewhere"}}));
  const auto answer = send_order("K1");
  EXPECT_EQ(answer.status, 307);
  EXPECT_EQ(answer.header("Idempotency-Status"), "released");
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(Outcomes, WithTheConflictStatusForUncertainOnesTheStatusChangesAndNothingElse) {
  operation().uncertain_status = 409;
  start();
  upstream_.next(Play().close());
  const auto answer = send_order("K1");
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(answer.member("reason"), "outcome-uncertain");
}

}  // namespace
}  // namespace einmal::test
