#include "einmal/gateway/gateway_fixture.hpp"

/// What is checked before a claim, in which order, and what reaches the upstream.

namespace einmal::test {
namespace {

class Requests : public GatewayTest {
 protected:
  void expect_free(const std::string& key) {
    const auto before = upstream_.count();
    EXPECT_EQ(send_order(key).header("Idempotency-Status"), "executed");
    EXPECT_EQ(upstream_.count(), before + 1);
  }
  HttpAnswer raw(const std::string& bytes, const std::string& method = "POST") {
    RawClient client(gateway_->port());
    client.send(bytes);
    return client.read_answer(method);
  }
};

TEST_F(Requests, WithoutAKeyAreRefusedWhereOneIsRequired) {
  start();
  const auto answer = send_order("");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.member("reason"), "key-missing");
  EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
  EXPECT_EQ(answer.header("Cache-Control"), "no-store");
  EXPECT_EQ(answer.header("Idempotency-Status"), "rejected");
  EXPECT_EQ(upstream_.count(), 0U);
}

TEST_F(Requests, WithoutAKeyPassWhereItIsOptional) {
  operation().key.required = false;
  start();
  for (int i = 0; i < 2; ++i) {
    const auto answer = send_order("");
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer.header("Idempotency-Status"), "");
  }
  EXPECT_EQ(upstream_.count(), 2U);
}

TEST_F(Requests, WithAKeyThatIsNoneAreRefusedAndLeaveItFree) {
  operation().key.aliases = {"X-Idempotency-Key"};
  start();
  const auto with = [&](HeaderList lines) {
    auto request = order("");
    for (auto& line : lines) request.headers.push_back(line);
    return send(request);
  };
  for (const auto& lines : std::vector<HeaderList>{
           {{"Idempotency-Key", ""}},
           {{"Idempotency-Key", "K, K"}},
           {{"Idempotency-Key", "K"}, {"Idempotency-Key", "K"}},
           {{"Idempotency-Key", "K"}, {"X-Idempotency-Key", "K"}},
           {{"Idempotency-Key", std::string(256, 'k')}},
           {{"Idempotency-Key", "K\xc3\xa9"}},
           {{"Idempotency-Key", "\"K"}},
       }) {
    const auto answer = with(lines);
    EXPECT_EQ(answer.status, 400) << lines.front().second;
    EXPECT_EQ(answer.member("reason"), "key-invalid") << lines.front().second;
  }
  EXPECT_EQ(upstream_.count(), 0U);
  expect_free("K");
  EXPECT_EQ(with({{"X-Idempotency-Key", "\"K\""}}).header("Idempotency-Status"), "replayed");
}

TEST_F(Requests, FromCallersThatAreNotKnownAreRefusedBeforeAnythingElse) {
  start();
  auto request = order("K1");
  std::erase_if(request.headers, [](const auto& line) { return line.first == "X-Caller"; });
  const auto unknown = send(request);
  EXPECT_EQ(unknown.status, 403);
  EXPECT_EQ(unknown.member("reason"), "caller-missing");
  send_order("K1");
  const auto known = send(request);
  EXPECT_EQ(known.status, unknown.status);
  EXPECT_EQ(known.body, unknown.body);
}

TEST_F(Requests, OfAnotherCallerAreAnotherOperation) {
  start();
  const auto first = send_order("K1");
  auto request = order("K1");
  for (auto& line : request.headers) {
    if (line.first == "X-Caller") line.second = "globex";
  }
  const auto second = send(request);
  EXPECT_EQ(second.header("Idempotency-Status"), "executed");
  EXPECT_NE(second.body, first.body);
}

TEST_F(Requests, FromPeersThatAreNotTrustedNeverNameTheirCaller) {
  config_.caller.trusted_peers = {"192.0.2.0/24"};
  start();
  EXPECT_EQ(send_order("K1").member("reason"), "caller-missing");
  HttpRequest unmatched;
  unmatched.method = "GET";
  unmatched.target = "/other";
  unmatched.headers = {{"X-Caller", "acme"}, {"X_Caller", "acme"}, {"X-Other", "kept"}};
  EXPECT_EQ(send(unmatched).status, 201);
  const auto seen = upstream_.requests().front();
  EXPECT_EQ(seen.count("X-Caller"), 0U);
  EXPECT_EQ(seen.count("X_Caller"), 0U);
  EXPECT_EQ(seen.header("X-Other"), "kept");
}

TEST_F(Requests, ReachTheUpstreamAsTheContractSays) {
  start();
  auto request = order("\"K1\"");
  request.target = "//%6Frders/?b=1&a=2";
  request.headers.insert(
      request.headers.end(),
      {{"Einmal-Fencing-Token", "7"},
       {"Einmal_Operation_Id", "x"},
       {"X-HTTP-Method-Override", "DELETE"},
       {"X_Method_Override", "DELETE"},
       {"Accept-Encoding", "gzip"},
       {"Connection", "X-Hop"},
       {"X-Hop", "1"},
       {"TE", "trailers"},
       {"Authorization", "Bearer t"},
       {"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}});
  EXPECT_EQ(send(request).header("Idempotency-Status"), "executed");
  const auto seen = upstream_.requests().front();
  EXPECT_EQ(seen.target, "//%6Frders/?b=1&a=2");
  EXPECT_EQ(seen.header("Idempotency-Key"), "\"K1\"");
  EXPECT_EQ(seen.count("Einmal-Fencing-Token"), 1U);
  EXPECT_NE(seen.header("Einmal-Fencing-Token"), "7");
  EXPECT_EQ(seen.header("Einmal-Operation-Id").size(), 36U);
  EXPECT_EQ(seen.count("Einmal_Operation_Id"), 0U);
  EXPECT_EQ(seen.count("X-HTTP-Method-Override"), 0U);
  EXPECT_EQ(seen.count("X_Method_Override"), 0U);
  EXPECT_EQ(seen.header("Accept-Encoding"), "identity");
  EXPECT_EQ(seen.count("X-Hop"), 0U);
  EXPECT_EQ(seen.count("TE"), 0U);
  EXPECT_EQ(seen.header("Authorization"), "Bearer t");
  EXPECT_EQ(seen.count("Content-Length"), 1U);
  EXPECT_FALSE(seen.header("traceparent").empty());
}

TEST_F(Requests, MayGiveTheUpstreamADerivedKeyOrNone) {
  operation().upstream_key = UpstreamKey::derived;
  start();
  send_order("K1");
  auto other = order("K1");
  for (auto& line : other.headers) {
    if (line.first == "X-Caller") line.second = "globex";
  }
  send(other);
  const auto seen = upstream_.requests();
  EXPECT_EQ(seen[0].header("Idempotency-Key").size(), 64U);
  EXPECT_NE(seen[0].header("Idempotency-Key"), seen[1].header("Idempotency-Key"));
  stop();
  operation().upstream_key = UpstreamKey::none;
  start();
  send_order("K2");
  EXPECT_EQ(upstream_.requests().back().count("Idempotency-Key"), 0U);
}

TEST_F(Requests, WithABodyOverTheLimitAreRefusedWithoutAClaim) {
  operation().max_request_body = 1000;
  start();
  const auto announced = send_order("K1", std::string(1001, 'x'));
  EXPECT_EQ(announced.status, 413);
  EXPECT_EQ(announced.member("reason"), "body-too-large");
  EXPECT_EQ(announced.header("Connection"), "close");
  std::string chunked =
      "POST /orders HTTP/1.1\r\nHost: x\r\nX-Caller: acme\r\nIdempotency-Key: K1\r\n"
      "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" +
      std::string(1001, 'x') + "\r\n0\r\n\r\n";
  EXPECT_EQ(raw(chunked).status, 413);
  EXPECT_EQ(upstream_.count(), 0U);
  expect_free("K1");
}

TEST_F(Requests, WithAHeadOverTheLimitAreRefused) {
  config_.limits.head = 4096;
  start();
  auto request = order("K1");
  request.headers.emplace_back("X-Long", std::string(5000, 'x'));
  const auto answer = send(request);
  EXPECT_EQ(answer.status, 431);
  EXPECT_EQ(answer.member("reason"), "head-too-large");
}

TEST_F(Requests, WhoseJsonHasNoSingleMeaningAreRefusedAndLeaveTheKeyFree) {
  start();
  const auto answer = send_order("K1", R"({"amount":10,"amount":1000})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.member("reason"), "body-unusable");
  expect_free("K1");
}

TEST_F(Requests, AreInvitedToSendTheirBodyOnlyOnceEverythingElseIsKnown) {
  start();
  const std::string head =
      "POST /orders HTTP/1.1\r\nHost: x\r\nX-Caller: acme\r\nContent-Length: 2\r\n"
      "Expect: 100-continue\r\n";
  const auto refused = raw(head + "\r\n");
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(refused.interim.empty());
  EXPECT_EQ(refused.header("Connection"), "close");

  RawClient client(gateway_->port());
  client.send(head + "Idempotency-Key: K1\r\n\r\n");
  const auto invitation = client.read_some();
  EXPECT_EQ(invitation.bytes, "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("{}");
  EXPECT_EQ(client.read_answer().status, 201);
  EXPECT_EQ(upstream_.requests().front().count("Expect"), 0U);
}

TEST_F(Requests, ThatEndInTheirBodyAreNeitherClaimedNorForwarded) {
  start();
  {
    RawClient client(gateway_->port());
    client.send(
        "POST /orders HTTP/1.1\r\nHost: x\r\nX-Caller: acme\r\nIdempotency-Key: K1\r\n"
        "Content-Length: 1000\r\n\r\n" +
        std::string(500, 'x'));
  }
  expect_free("K1");
  EXPECT_EQ(upstream_.begun(), 1U);
}

TEST_F(Requests, ThatComeTooSlowlyAreGivenUp) {
  config_.limits.body_time = std::chrono::milliseconds(200);
  config_.limits.body_rate = 1 << 20;
  config_.limits.head_time = std::chrono::milliseconds(200);
  start();
  const auto slow_body =
      raw("POST /orders HTTP/1.1\r\nHost: x\r\nX-Caller: acme\r\nIdempotency-Key: K1\r\n"
          "Content-Length: 10\r\n\r\nabc");
  EXPECT_EQ(slow_body.status, 408);
  RawClient slow_head(gateway_->port());
  slow_head.send("POST /orders HT");
  EXPECT_NE(slow_head.read_to_end().kind, Incoming::Kind::timeout);
  expect_free("K1");
}

TEST_F(Requests, AreAnsweredInOrderOnOneConnection) {
  start();
  RawClient client(gateway_->port());
  std::string both;
  for (const auto* key : {"A", "B"}) both += to_bytes(order(key));
  client.send(both);
  const auto first = client.read_answer();
  const auto second = client.read_answer();
  EXPECT_EQ(send_order("A").body, first.body);
  EXPECT_EQ(send_order("B").body, second.body);
  EXPECT_NE(first.body, second.body);
  EXPECT_EQ(upstream_.count(), 2U);
}

TEST_F(Requests, OfHttp10AreServedAndTheirConnectionEnds) {
  start();
  RawClient client(gateway_->port());
  client.send(
      "POST /orders HTTP/1.0\r\nHost: x\r\nX-Caller: acme\r\nIdempotency-Key: K1\r\n"
      "Content-Length: 2\r\n\r\n{}");
  const auto everything = client.read_to_end();
  EXPECT_EQ(everything.kind, Incoming::Kind::end);
  EXPECT_NE(everything.bytes.find("HTTP/1.1 201"), std::string::npos);
  EXPECT_EQ(everything.bytes.find("chunked"), std::string::npos);
}

TEST_F(Requests, MayCarryTheirKeyInTheBody) {
  operation().key.member = "/idempotency_key";
  start();
  const auto body = R"({"idempotency_key":"K1","amount":1})";
  EXPECT_EQ(send_order("", body).header("Idempotency-Status"), "executed");
  EXPECT_EQ(send_order("", body).header("Idempotency-Status"), "replayed");
  EXPECT_EQ(send_order("K1", body).member("reason"), "key-invalid");
  EXPECT_EQ(send_order("", R"({"amount":1})").member("reason"), "key-missing");
  EXPECT_EQ(send_order("", R"({"idempotency_key":7})").member("reason"), "key-invalid");
  stop();
  operation().key.required = false;
  start();
  const auto unkeyed = send_order("", R"({"amount":1})");
  EXPECT_EQ(unkeyed.status, 201);
  EXPECT_EQ(unkeyed.header("Idempotency-Status"), "");
}

TEST_F(Requests, WithoutOperationsEveryPostAndPatchMayCarryAKey) {
  config_.operations.clear();
  start();
  for (const auto* method : {"POST", "PATCH", "PUT"}) {
    auto request = order("K1");
    request.method = method;
    request.target = "/anything/here";
    send(request);
    send(request);
  }
  EXPECT_EQ(upstream_.count(), 4U);
  auto elsewhere = order("K1");
  elsewhere.target = "/anything/else";
  EXPECT_EQ(send(elsewhere).header("Idempotency-Status"), "executed");
}

}  // namespace
}  // namespace einmal::test
