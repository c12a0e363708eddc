#include "einmal/fingerprint/content_coding.hpp"
#include "einmal/gateway/gateway_fixture.hpp"

/// What of an answer is kept, and how it comes back.

namespace einmal::test {
namespace {

class Replays : public GatewayTest {
 protected:
  http::HeaderLines lines(const HttpAnswer& answer,
                          std::initializer_list<std::string_view> names) const {
    http::HeaderLines kept;
    for (const auto line : answer.headers) {
      for (const auto name : names) {
        if (http::iequals(line.name, name)) kept.add(line.name, line.value);
      }
    }
    return kept;
  }
};

TEST_F(Replays, HaveTheStoredLinesInTheirOrderAndNoneOfTheOthers) {
  start();
  const HeaderList sent = {{"Link", "</a>; rel=next"},
                           {"Content-Disposition", "attachment; filename=\"a,b.txt\""},
                           {"Set-Cookie", "a=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT"},
                           {"Link", "</b>"},
                           {"ETag", "W/\"x,y\""},
                           {"Vary", "Accept"},
                           {"Vary", "Origin"},
                           {"X-Empty", ""},
                           {"X-Long", std::string(6000, 'v')},
                           {"X-High", "caf\xc3\xa9 \xe9"},
                           {"Connection", "X-Hop"},
                           {"X-Hop", "1"},
                           {"Keep-Alive", "timeout=5"},
                           {"Date", "Sun, 06 Nov 1994 08:49:37 GMT"},
                           {"Idempotent-Replayed", "true"},
                           {"Idempotency-Status", "forged"}};
  upstream_.next(Play().answer(201, "body", sent));
  const auto first = send_order("K1");
  EXPECT_EQ(first.headers.count("Idempotent-Replayed"), 0U);
  EXPECT_EQ(first.header("Idempotency-Status"), "executed");
  EXPECT_EQ(first.headers.count("Set-Cookie"), 1U);
  EXPECT_EQ(first.headers.count("X-Hop"), 0U);

  const auto replay = send_order("K1");
  const auto kept = {std::string_view("Link"),    std::string_view("Content-Disposition"),
                     std::string_view("ETag"),    std::string_view("Vary"),
                     std::string_view("X-Empty"), std::string_view("X-Long"),
                     std::string_view("X-High")};
  EXPECT_EQ(lines(replay, kept), lines(first, kept));
  EXPECT_EQ(lines(replay, kept).size(), 9U);
  for (const auto* name : {"Set-Cookie", "X-Hop", "Keep-Alive"})
    EXPECT_EQ(replay.headers.count(name), 0U) << name;
  EXPECT_EQ(replay.body, "body");
  stop();
  start();
  const auto again = send_order("K1");
  EXPECT_NE(replay.header("Date"), "Sun, 06 Nov 1994 08:49:37 GMT");
  auto before = replay.headers;
  auto after = again.headers;
  before.remove("Date");
  after.remove("Date");
  EXPECT_EQ(after, before);
}

TEST_F(Replays, OfChunkedAnswersHaveALength) {
  start();
  upstream_.next(
      Play().send("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "5\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n"));
  const auto first = send_order("K1");
  EXPECT_EQ(first.body, "hello world");
  EXPECT_EQ(first.header("Content-Length"), "11");
  EXPECT_EQ(first.headers.count("X-Trailer"), 0U);
  EXPECT_EQ(send_order("K1").body, "hello world");
}

TEST_F(Replays, OfAnAnswerThatWasTooLargeSayThatItsBodyWasNotKept) {
  operation().max_stored_body = 100'000;
  start();
  const std::string large(1'000'000, 'x');
  upstream_.next(Play().answer(201, large, {{"Location", "/orders/1"}}));
  const auto announced = send_order("length");
  EXPECT_EQ(announced.body, large);
  EXPECT_EQ(announced.header("Idempotency-Status"), "executed");
  EXPECT_EQ(announced.header("Content-Length"), "1000000");

  upstream_.next(Play().send("HTTP/1.1 201 Created\r\n\r\n" + large).close());
  EXPECT_EQ(send_order("close").body, large);

  upstream_.next(
      Play()
          .send("HTTP/1.1 201 Created\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
          .close());
  EXPECT_EQ(send_order("stream").body, "data: 1\n\n");

  for (const auto* key : {"length", "close", "stream"}) {
    const auto repeat = send_order(key);
    EXPECT_EQ(repeat.status, 409) << key;
    EXPECT_EQ(repeat.member("reason"), "result-not-kept") << key;
    EXPECT_EQ(repeat.header("Idempotency-Status"), "replayed") << key;
    EXPECT_EQ(upstream_.effects(key), 1U);
  }
  EXPECT_EQ(send_order("length").member("resource_id"), "/orders/1");
}

TEST_F(Replays, OfAnAnswerThatBrokeAfterItWasSettledAreNotExecutions) {
  operation().max_stored_body = 1000;
  start();
  upstream_.next(Play().send("HTTP/1.1 201 Created\r\nContent-Length: 5000\r\n\r\nhalf").reset());
  EXPECT_FALSE(send_order("K1").is_whole());
  EXPECT_EQ(send_order("K1").member("reason"), "result-not-kept");
  EXPECT_EQ(upstream_.effects("K1"), 1U);
}

TEST_F(Replays, WithoutRoomInTheBudgetAreStreamedAndNotKept) {
  config_.limits.buffer_budget = 20'000;
  start();
  const std::string body(50'000, 'x');
  upstream_.next(Play().answer(201, body));
  EXPECT_EQ(send_order("K1").body, body);
  EXPECT_EQ(send_order("K1").member("reason"), "result-not-kept");
  EXPECT_EQ(send_order("K2", std::string(30'000, 'y')).member("reason"), "overloaded");
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(Replays, OfCodedAnswersAreDecodedForClientsThatDoNotTakeTheCoding) {
  start();
  // gzip of "hello gzip"
  const auto coded = from_hex("1f8b08000000000002ffcb48cdc9c95748afca2c0000196ad2df0a000000");
  ASSERT_TRUE(coded);
  upstream_.next(Play().answer(201, *coded, {{"Content-Encoding", "gzip"}, {"ETag", "\"e\""}}));
  auto takes_gzip = order("K1");
  takes_gzip.headers.emplace_back("Accept-Encoding", "gzip");
  const auto first = send(takes_gzip);
  EXPECT_EQ(first.body, *coded);
  EXPECT_EQ(first.header("Content-Encoding"), "gzip");
  EXPECT_EQ(send(takes_gzip).body, *coded);
  auto refuses_gzip = order("K1");
  refuses_gzip.headers.emplace_back("Accept-Encoding", "br;q=1, gzip;q=0");
  const auto decoded = send(refuses_gzip);
  EXPECT_EQ(decoded.status, 201);
  EXPECT_EQ(decoded.body, "hello gzip");
  EXPECT_EQ(decoded.headers.count("Content-Encoding"), 0U);
  EXPECT_EQ(decoded.header("ETag"), "W/\"e\"");
  EXPECT_EQ(decoded.header("Content-Length"), "10");

  upstream_.next(Play().answer(201, "????", {{"Content-Encoding", "br"}}));
  EXPECT_EQ(send_order("K2").status, 406);
  EXPECT_EQ(send_order("K2").member("reason"), "not-acceptable");
  EXPECT_EQ(upstream_.effects("K2"), 1U);
}

TEST_F(Replays, OfTextAreCompressedForClientsThatPreferItAndAreTheSameBytesDecoded) {
  start();
  std::string text = "[";
  for (int i = 0; i < 200; ++i) text += "{\"item\":\"\\u00e4-" + std::to_string(i) + "\"},";
  text += "{}]";
  upstream_.always(
      Play().answer(201, text, {{"Content-Type", "application/json"}, {"ETag", "\"e\""}}));
  const auto ask = [&](const std::string& accepted) {
    auto request = order("K1");
    if (!accepted.empty()) request.headers.emplace_back("Accept-Encoding", accepted);
    return send(request);
  };
  // The first answer and its replays alike.
  for (const std::string accepted :
       {"gzip", "gzip", "zstd, gzip;q=0.9", "gzip, deflate, br, zstd"}) {
    const auto coded = ask(accepted);
    const auto coding = coded.header("Content-Encoding");
    EXPECT_EQ(coding, accepted == "gzip" ? "gzip" : "zstd");
    EXPECT_LT(coded.body.size(), text.size() / 2);
    Bytes decoded;
    EXPECT_EQ(decode_body({std::string(coding)}, coded.body, text.size(), decoded),
              Decoding::decoded);
    EXPECT_EQ(decoded, text);
    EXPECT_EQ(coded.header("ETag"), "W/\"e\"");
    EXPECT_EQ(coded.header("Vary"), "Accept-Encoding");
    EXPECT_EQ(coded.header("Content-Length"), std::to_string(coded.body.size()));
  }
  for (const std::string accepted : {"", "identity", "gzip;q=0", "gzip;q=0.5, identity"}) {
    const auto plain = ask(accepted);
    EXPECT_EQ(plain.body, text) << accepted;
    EXPECT_EQ(plain.headers.count("Content-Encoding"), 0U) << accepted;
    EXPECT_EQ(plain.header("ETag"), "\"e\"") << accepted;
    EXPECT_EQ(plain.header("Vary"), "Accept-Encoding") << accepted;
  }
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(Replays, AreNotCompressedWhereThatWouldChangeWhatTheAnswerSays) {
  start();
  const std::string text(5000, 't');
  const HeaderList json = {{"Content-Type", "application/json"}};
  const auto with = [&](const std::string& name, const std::string& value) {
    HeaderList lines = json;
    lines.emplace_back(name, value);
    return Play().answer(201, text, lines);
  };
  std::vector<Play> plays = {
      with("Cache-Control", "private, no-transform"),
      with("Content-Digest", "sha-256=:AAAA:"),
      with("Repr-Digest", "sha-256=:AAAA:"),
      with("Signature", "sig1=:AAAA:"),
      with("Content-Encoding", "x-own"),
      Play().answer(206, text, json),
      Play().answer(201, std::string(1023, 't'), json),
      Play().answer(201, std::string(256 * 1024 + 1, 't'), json),
      Play().answer(201, text, {{"Content-Type", "image/png"}}),
      Play().answer(201, text),
  };
  for (std::size_t i = 0; i < plays.size(); ++i) {
    upstream_.next(plays[i]);
    auto request = order("K" + std::to_string(i));
    request.headers.emplace_back("Accept-Encoding", "gzip, zstd, x-own");
    for (int attempt = 0; attempt < 2; ++attempt) {
      const auto answer = send(request);
      EXPECT_EQ(answer.body.find_first_not_of('t'), std::string::npos) << i;
      EXPECT_EQ(answer.header("Content-Encoding"), i == 4 ? "x-own" : "") << i;
      EXPECT_EQ(answer.headers.count("Vary"), 0U) << i;
    }
  }
  stop();
  config_.compress = false;
  start();
  upstream_.next(Play().answer(201, text, json));
  auto request = order("plain");
  request.headers.emplace_back("Accept-Encoding", "gzip");
  EXPECT_EQ(send(request).body, text);
}

TEST_F(Replays, MayBeTheCurrentRepresentationOfWhatWasMade) {
  operation().replay = ReplayMode::resource;
  start();
  upstream_.always([](const HttpRequest& request, std::size_t) {
    if (request.method == "GET") return Play().answer(200, "as it is now");
    return Play().answer(201, "as it was", {{"Location", "/orders/7"}});
  });
  auto request = order("K1");
  request.headers.emplace_back("Authorization", "Bearer mine");
  EXPECT_EQ(send(request).body, "as it was");
  const auto replay = send(request);
  EXPECT_EQ(replay.status, 200);
  EXPECT_EQ(replay.body, "as it is now");
  EXPECT_EQ(replay.header("Idempotency-Representation"), "current");
  EXPECT_EQ(replay.header("Idempotency-Status"), "replayed");
  const auto get = upstream_.requests().back();
  EXPECT_EQ(get.target, "/orders/7");
  EXPECT_EQ(get.header("Authorization"), "Bearer mine");
  EXPECT_EQ(get.count("Idempotency-Key"), 0U);
  EXPECT_EQ(get.count("Content-Length"), 0U);
}

TEST_F(Replays, GoToOtherOriginsOnlyAsConfigured) {
  start();
  upstream_.next(Play().answer(201, "x", {{"Access-Control-Allow-Origin", "https://a.example"}}));
  const auto from = [&](const std::string& origin) {
    auto request = order("K1");
    request.headers.emplace_back("Origin", origin);
    return send(request);
  };
  from("https://a.example");
  EXPECT_EQ(from("https://a.example").header("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(from("https://b.example").headers.count("Access-Control-Allow-Origin"), 0U);
  stop();
  config_.cors = CorsConfig{};
  config_.cors->origins = {"https://b.example"};
  start();
  EXPECT_EQ(from("https://b.example").header("Access-Control-Allow-Origin"), "https://b.example");
  EXPECT_EQ(from("https://a.example").headers.count("Access-Control-Allow-Origin"), 0U);

  HttpRequest preflight;
  preflight.method = "OPTIONS";
  preflight.headers = {{"Origin", "https://b.example"},
                       {"Access-Control-Request-Method", "POST"},
                       {"Access-Control-Request-Headers", "idempotency-key"}};
  const auto allowed = send(preflight);
  EXPECT_EQ(allowed.status, 204);
  EXPECT_NE(allowed.header("Access-Control-Allow-Headers").find("Idempotency-Key"),
            std::string::npos);
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(Replays, EndWithTheirRetention) {
  operation().policies.retention = std::chrono::milliseconds(300);
  start();
  const auto first = send_order("K1");
  EXPECT_TRUE(eventually([&] { return send_order("K1").body != first.body; }));
  operation().policies.after_expiry = AfterExpiry::refuse;
  stop();
  start();
  send_order("K2");
  HttpAnswer gone;
  EXPECT_TRUE(eventually([&] {
    gone = send_order("K2");
    return gone.status == 410;
  }));
  EXPECT_EQ(gone.member("reason"), "key-expired");
  EXPECT_EQ(gone.header("Idempotency-Status"), "expired");
}

TEST_F(Replays, ArePublishedInTheContract) {
  operation().title = "Make an order";
  start();
  const auto published =
      HttpClient(gateway_->port()).get("/.well-known/idempotency", {{"X-Caller", "acme"}});
  EXPECT_EQ(published.status, 200);
  EXPECT_NE(published.body.find("\"retention\":\"P1D\""), std::string::npos) << published.body;
  EXPECT_EQ(HttpClient(gateway_->port()).get("/.well-known/idempotency").status, 403);
  stop();
  config_.discovery = Discovery::off;
  start();
  EXPECT_EQ(HttpClient(gateway_->port()).get("/.well-known/idempotency").status, 201);
}

}  // namespace
}  // namespace einmal::test
