#include <fstream>

#include "einmal/gateway/gateway_fixture.hpp"

/// What matches no operation passes through untouched.

namespace einmal::test {
namespace {

using std::chrono::milliseconds;

class Proxying : public GatewayTest {
 protected:
  HttpAnswer get(const std::string& target = "/things", HeaderList headers = {}) {
    return HttpClient(gateway_->port()).get(target, std::move(headers));
  }
};

TEST_F(Proxying, KeepsMethodTargetLinesAndBody) {
  start();
  upstream_.always(Play().answer(418, "tea", {{"X-Answer", "a"}, {"X-answer", "b"}}));
  HttpRequest request;
  request.method = "BREW";
  request.target = "/a%2Fb//../c?x=1&x=2";
  request.body = "beans";
  request.headers = {{"X-One", "1"}, {"x-one", "2"}, {"Expect-Not", "3"}};
  const auto answer = send(request);
  EXPECT_EQ(answer.status, 418);
  EXPECT_EQ(answer.body, "tea");
  EXPECT_EQ(answer.headers.all("x-answer").size(), 2U);
  EXPECT_EQ(answer.header("Idempotency-Status"), "");
  const auto seen = upstream_.requests().front();
  EXPECT_EQ(seen.method, "BREW");
  EXPECT_EQ(seen.target, request.target);
  EXPECT_EQ(seen.body, "beans");
  EXPECT_EQ(seen.header("X-One"), "1");
  EXPECT_EQ(seen.count("X-One"), 2U);
}

TEST_F(Proxying, StreamsBodiesOfAnySizeBothWaysWithoutHoldingThem) {
  start();
  upstream_.always(
      [](const HttpRequest& request, std::size_t) { return Play().answer(200, request.body); });
  HttpRequest request;
  request.method = "PUT";
  request.target = "/files/large";
  request.body.resize(std::size_t{48} << 20);
  for (std::size_t i = 0; i < request.body.size(); ++i)
    request.body[i] = static_cast<char>('a' + i * 7 % 26);
  EXPECT_EQ(send(request).body, request.body);
  RawClient client(gateway_->port());
  client.send(
      "PUT /files/chunked HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nX-Trailer: t\r\nIdempotency-Key: forged\r\n\r\n");
  EXPECT_EQ(client.read_answer("PUT").body, "hello world");
  const auto seen = upstream_.requests().back();
  EXPECT_EQ(seen.trailers.first("X-Trailer"), "t");
  EXPECT_FALSE(seen.trailers.has("Idempotency-Key"));
}

TEST_F(Proxying, PassesInterimAnswersAndBodylessOnesOn) {
  start();
  upstream_.next(
      Play().send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n").answer(200, "final"));
  const auto hinted = get();
  ASSERT_EQ(hinted.interim.size(), 1U);
  EXPECT_NE(hinted.interim.front().find("Link: </x>"), std::string::npos);
  EXPECT_EQ(hinted.body, "final");
  RawClient client(gateway_->port());
  for (const auto* status : {"204 No Content", "304 Not Modified"}) {
    upstream_.next(Play().send("HTTP/1.1 " + std::string(status) + "\r\nETag: \"x\"\r\n\r\n"));
    client.send("GET /things HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.read_answer("GET").header("ETag"), "\"x\"");
  }
  upstream_.next(Play().send("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"));
  client.send("HEAD /things HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto head = client.read_answer("HEAD");
  EXPECT_EQ(head.header("Content-Length"), "1234");
  upstream_.next(Play().answer(200, "still in step"));
  client.send("GET /things HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_answer("GET").body, "still in step");
}

TEST_F(Proxying, FramesAnswersWithoutALengthForEachClient) {
  start();
  const Play unbounded = Play().send("HTTP/1.1 200 OK\r\n\r\nall of it").close();
  upstream_.next(unbounded);
  EXPECT_EQ(get().body, "all of it");
  upstream_.next(
      Play().send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "3\r\nabc\r\n0\r\n\r\n"));
  RawClient old(gateway_->port());
  old.send("GET /things HTTP/1.0\r\nHost: x\r\n\r\n");
  const auto everything = old.read_to_end();
  EXPECT_EQ(everything.kind, Incoming::Kind::end);
  EXPECT_EQ(everything.bytes.substr(everything.bytes.size() - 7), "\r\n\r\nabc");
}

TEST_F(Proxying, SaysThatTheUpstreamFailed) {
  config_.times.answer = milliseconds(200);
  start();
  upstream_.next(Play().close());
  const auto closed = get();
  EXPECT_EQ(closed.status, 502);
  EXPECT_EQ(closed.member("reason"), "upstream-failed");
  EXPECT_EQ(closed.header("Idempotency-Status"), "");
  upstream_.next(Play().send("garbage\r\n\r\n").close());
  EXPECT_EQ(get().status, 502);
  upstream_.next(Play().stall());
  EXPECT_EQ(get().status, 504);
  upstream_.next(Play().send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").close());
  EXPECT_FALSE(get().is_whole());
  upstream_.next(
      Play().send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nha").close());
  EXPECT_FALSE(get().is_whole());
  stop();
  config_.upstream.addresses.front().address.port = refused_port();
  start();
  EXPECT_EQ(get().status, 502);
}

TEST_F(Proxying, EndsTheUpstreamsRequestWhenTheClientLeavesInTheMiddle) {
  start();
  {
    RawClient client(gateway_->port());
    client.send("PUT /files/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf");
    EXPECT_TRUE(eventually([&] { return upstream_.begun() == 1; }));
  }
  EXPECT_EQ(get().status, 201);
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(Proxying, AnswersWhileTheRequestIsStillComing) {
  start();
  upstream_.next(Play::after_reading_only(10).answer(413, "too much").stall());
  RawClient client(gateway_->port());
  client.send("PUT /files/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\nbegin");
  const auto answer = client.read_answer("PUT");
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.body, "too much");
}

TEST_F(Proxying, TunnelsAfterAnUpgrade) {
  start();
  upstream_.next(Play()
                     .send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n"
                           "Connection: Upgrade\r\n\r\nserver speaks")
                     .stall());
  RawClient client(gateway_->port());
  client.send(
      "GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\nConnection: keep-alive, Upgrade\r\n\r\n"
      "client speaks");
  std::string seen;
  while (seen.find("server speaks") == std::string::npos) {
    const auto some = client.read_some();
    ASSERT_EQ(some.kind, Incoming::Kind::data);
    seen += some.bytes;
  }
  EXPECT_EQ(seen.rfind("HTTP/1.1 101", 0), 0U);
  EXPECT_NE(seen.find("Upgrade: echo"), std::string::npos);
  EXPECT_EQ(upstream_.requests().front().header("Upgrade"), "echo");
}

TEST_F(Proxying, ACheekySwitchOfProtocolsIsAFailure) {
  start();
  upstream_.next(
      Play().send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
                  "Connection: upgrade\r\n\r\n"));
  EXPECT_EQ(get().status, 502);
}

TEST_F(Proxying, KeysOnUnmatchedRoutesPassOrAreRefusedAsConfigured) {
  start();
  EXPECT_EQ(get("/things", {{"Idempotency-Key", "K"}}).status, 201);
  EXPECT_EQ(upstream_.requests().front().header("Idempotency-Key"), "K");
  stop();
  config_.unmatched_key = UnmatchedKey::refuse;
  start();
  const auto refused = get("/things", {{"Idempotency-Key", "K"}});
  EXPECT_EQ(refused.status, 501);
  EXPECT_EQ(refused.member("reason"), "not-idempotent-here");
}

TEST_F(Proxying, RefusesWhatTwoParsersCouldReadDifferently) {
  start();
  const std::string head = "POST /things HTTP/1.1\r\nHost: x\r\n";
  for (const auto& [bytes, status] : std::vector<std::pair<std::string, int>>{
           {head + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
           {head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
           {head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
           {head + "X: a\r\n b\r\n\r\n", 400},
           {head + "X : a\r\n\r\n", 400},
           {"POST /things HTTP/1.1\r\n\r\n", 400},
           {head + "Host: y\r\n\r\n", 400},
           {"POST /things HTTP/1.1\nHost: x\n\n", 400},
       }) {
    RawClient client(gateway_->port());
    client.send(bytes);
    const auto answer = client.read_answer();
    EXPECT_EQ(answer.status, status) << bytes;
    EXPECT_EQ(answer.header("Connection"), "close") << bytes;
    EXPECT_EQ(client.read_to_end().kind, Incoming::Kind::end);
  }
  EXPECT_EQ(upstream_.begun(), 0U);
}

TEST_F(Proxying, BadChunksEndTheUpstreamsRequestToo) {
  start();
  RawClient client(gateway_->port());
  client.send(
      "POST /things HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n");
  client.read_to_end();
  EXPECT_EQ(get().status, 201);
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(Proxying, QueuesForAConnectionWhereAllAreInUse) {
  config_.upstream.connections = 2;
  start();
  const auto gate = std::make_shared<Gate>();
  upstream_.always(Play().wait(gate).answer(200, "ok"));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<RawClient>(gateway_->port()));
    clients.back()->send("GET /things HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  EXPECT_TRUE(upstream_.wait_for(2));
  gate->open();
  for (auto& client : clients) EXPECT_EQ(client->read_answer("GET").body, "ok");
  EXPECT_EQ(upstream_.connections(), 2U);
}

TEST_F(Proxying, RefusesConnectionsOverTheLimit) {
  config_.limits.connections = 2;
  start();
  RawClient first(gateway_->port());
  RawClient second(gateway_->port());
  for (auto* client : {&first, &second}) {
    client->send("GET /things HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client->read_answer("GET").status, 201);
  }
  RawClient third(gateway_->port());
  EXPECT_NE(third.read_some().kind, Incoming::Kind::data);
  second.close();
  EXPECT_TRUE(eventually([&] {
    RawClient next(gateway_->port());
    next.send("GET /things HTTP/1.1\r\nHost: x\r\n\r\n");
    return next.read_answer("GET").status == 201;
  }));
}

TEST_F(Proxying, ServesMetricsAndHealthOnTheirOwnPort) {
  config_.metrics = HostPort{"127.0.0.1", 0};
  start();
  const HttpClient admin(gateway_->metrics_port());
  EXPECT_EQ(admin.get("/healthz").status, 200);
  EXPECT_EQ(admin.get("/readyz").body, "ready\n");
  EXPECT_EQ(admin.get("/metrics").status, 200);
  EXPECT_EQ(admin.get("/other").status, 404);
  EXPECT_EQ(admin.post("/metrics", "").status, 405);
}

}  // namespace
}  // namespace einmal::test
