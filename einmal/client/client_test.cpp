#include "einmal/client/client.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "einmal/client/operation.hpp"
#include "einmal/client/window.hpp"
#include "einmal/testing/process.hpp"
#include "einmal/testing/scripted_upstream.hpp"
#include "einmal/testing/virtual_clock.hpp"

namespace einmal::client {
namespace {

using test::Play;

class SkipAhead final : public Pause {
 public:
  explicit SkipAhead(testing::VirtualClock& clock) : clock_(clock) {}
  void pause(Duration time) override { clock_.advance(time); }

 private:
  testing::VirtualClock& clock_;
};

class Recorder final : public Watcher {
 public:
  void at(Point point) override { seen.push_back(point); }
  std::vector<Point> seen;
};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() : pause_(clock_) {
    CurlOptions options;
    options.proxy = "";
    options.largest_answer = 100'000;
    transport_ = make_curl_transport(options);
    auto journal = Journal::open(directory_.file("keys"), random_, clock_.wall_now());
    if (!journal) throw std::runtime_error(journal.error().message);
    journal_ = std::move(*journal);
    options_.patience.max_attempts = 3;
  }

  Client client() {
    return Client({*journal_, *transport_, clock_, random_, pause_, &recorder_}, options_);
  }
  Request request(std::string body = "{\"item\":\"tea\"}") const {
    Request made;
    made.url = upstream_.url() + "/orders";
    made.headers = {{"Content-Type", "application/json"}};
    made.body = std::move(body);
    return made;
  }
  Outcome send(const std::string& intent, const Request& made) {
    auto outcome = client().send(intent, made);
    if (!outcome) throw std::runtime_error(outcome.error().message);
    return *outcome;
  }

  test::TempDir directory_;
  testing::VirtualClock clock_;
  SystemRandom random_;
  SkipAhead pause_;
  Recorder recorder_;
  test::ScriptedUpstream upstream_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Journal> journal_;
  ClientOptions options_;
};

// C20: after a warm connection the server misbehaves on the second POST in every way that makes
// HTTP libraries send it again. What the server saw is what was reported.
class HiddenResends : public ClientTest, public ::testing::WithParamInterface<int> {};

TEST_P(HiddenResends, NeverHappen) {
  const Play misbehaviours[] = {Play().reset(), Play().send("HTTP/1.1 201 Created\r\n").reset(),
                                Play().close(), Play::after_reading_only(10).close(),
                                Play().answer(408, "", {{"Connection", "close"}}).close()};
  ASSERT_EQ(name(send("warm", request()).verdict), "succeeded");
  const auto before = upstream_.begun();
  options_.patience.max_attempts = 1;
  upstream_.always(misbehaviours[GetParam()]);
  const Outcome outcome = send("second", request(std::string(20'000, 'x')));
  EXPECT_EQ(name(outcome.verdict), "unknown");
  EXPECT_EQ(outcome.attempts, 1);
  EXPECT_EQ(upstream_.begun() - before, 1U);
  EXPECT_EQ(upstream_.connections(), 2U);
  EXPECT_LE(upstream_.effects(outcome.key), 1U);
}
INSTANTIATE_TEST_SUITE_P(Misbehaviours, HiddenResends, ::testing::Range(0, 5));

TEST_F(ClientTest, EachAttemptHasAConnectionOfItsOwn) {
  upstream_.next(Play().close());
  upstream_.next(Play().answer(503));
  const Outcome outcome = send("order", request());
  EXPECT_EQ(outcome.attempts, 3);
  EXPECT_EQ(upstream_.begun(), 3U);
  EXPECT_EQ(upstream_.connections(), 3U);
}

TEST_F(ClientTest, TheRequestIsDurableBeforeAConnectionIsMade) {
  send("order", request());
  const std::vector<Point> wanted = {Point::intent_durable, Point::attempt_durable,
                                     Point::connected,      Point::answer_began,
                                     Point::answer_whole,   Point::verdict_durable};
  EXPECT_EQ(recorder_.seen, wanted);
}

TEST_F(ClientTest, TheKeyIsAFreshRandomUuidForEachIntent) {
  const Outcome first = send("one", request());
  const Outcome second = send("two", request());
  EXPECT_NE(first.key, second.key);
  ASSERT_EQ(first.key.size(), 36U);
  EXPECT_EQ(first.key[14], '4');
}

TEST_F(ClientTest, TheApplicationsOwnKeyIsNeverReplaced) {
  Request made = request();
  made.key = "my-key-1";
  EXPECT_EQ(send("one", made).key, "my-key-1");
  Request by_header = request();
  by_header.headers.add("idempotency-key", "\"my-key-2\"");
  EXPECT_EQ(send("two", by_header).key, "my-key-2");
  EXPECT_EQ(upstream_.requests().back().count("Idempotency-Key"), 1U);
  made.key = "another";
  const auto refused = client().send("one", made);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid);
  EXPECT_EQ(upstream_.count(), 2U);
}

TEST_F(ClientTest, QuotesTheKeyIfTold) {
  options_.key_style = KeyStyle::quoted;
  const Outcome outcome = send("one", request());
  EXPECT_EQ(upstream_.requests()[0].header("Idempotency-Key"), '"' + outcome.key + '"');
}

TEST_F(ClientTest, CredentialsAreSentAndNeverStored) {
  Request made = request();
  made.credentials = {{"Authorization", "Bearer first-secret"}};
  upstream_.next(Play().answer(401));
  EXPECT_EQ(name(send("one", made).verdict), "not_attempted");
  made.credentials = {{"Authorization", "Bearer second-secret"}};
  EXPECT_EQ(name(send("one", made).verdict), "succeeded");
  const auto requests = upstream_.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].header("Authorization"), "Bearer second-secret");
  EXPECT_EQ(requests[0].header("Idempotency-Key"), requests[1].header("Idempotency-Key"));
  const auto entry = journal_->find("one");
  EXPECT_FALSE((*entry)->intent.headers.has("Authorization"));
}

TEST_F(ClientTest, TheSameNameForAnotherRequestIsAnErrorAndNothingIsSent) {
  send("one", request());
  const auto other = client().send("one", request("{\"item\":\"coffee\"}"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::invalid);
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(ClientTest, ARejectedRequestMayComeAgainAsItIsOrCorrected) {
  upstream_.next(Play().answer(404));
  const Outcome rejected = send("one", request());
  EXPECT_EQ(why(rejected.verdict), Why::rejected);
  upstream_.next(Play().answer(404));
  EXPECT_EQ(send("one", request()).key, rejected.key);
  EXPECT_EQ(upstream_.count(), 2U);
  const auto resumed = client().resume("one");
  ASSERT_TRUE(resumed);
  EXPECT_EQ(why(resumed->verdict), Why::rejected);
  EXPECT_TRUE(resumed->from_journal);
  EXPECT_EQ(upstream_.count(), 2U) << "nobody asked for it again";
  const Outcome corrected = send("one", request("{\"item\":\"coffee\"}"));
  EXPECT_EQ(name(corrected.verdict), "succeeded");
  EXPECT_NE(corrected.key, rejected.key);
}

TEST_F(ClientTest, ResumeSendsTheSameBytesUnderTheSameKey) {
  options_.patience.max_attempts = 1;
  upstream_.next(Play().close());
  const Outcome lost = send("one", request());
  EXPECT_EQ(name(lost.verdict), "unknown");
  auto found = client().resume("one");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(name(found->verdict), "succeeded");
  const auto requests = upstream_.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[1].target, "/.well-known/idempotency");
  EXPECT_EQ(requests[0].head_bytes, requests[2].head_bytes);
  EXPECT_EQ(requests[0].body, requests[2].body);
  EXPECT_FALSE(client().resume("unheard of"));
}

TEST_F(ClientTest, ATooLongAnswerIsASuccessWithoutItsBody) {
  upstream_.always(Play().answer(201, std::string(200'000, 'x')));
  const Outcome outcome = send("one", request());
  EXPECT_EQ(name(outcome.verdict), "succeeded");
  EXPECT_TRUE(answer_of(outcome.verdict)->body_cut);
  EXPECT_EQ(answer_of(outcome.verdict)->body, "");
}

TEST_F(ClientTest, TrailersSayNothingAboutTheKey) {
  upstream_.always(Play()
                       .send("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "2\r\n{}\r\n0\r\nIdempotent-Replayed: true\r\n\r\n")
                       .close());
  EXPECT_EQ(name(send("one", request()).verdict), "succeeded");
}

TEST_F(ClientTest, AnotherProcessAtWorkIsWaitedForUntilTheDeadline) {
  auto held = IntentLock::try_take(directory_.file("keys"), "one");
  ASSERT_TRUE(held && *held);
  const Outcome outcome = send("one", request());
  EXPECT_EQ(name(outcome.verdict), "unknown");
  EXPECT_EQ(why(outcome.verdict), Why::in_progress);
  EXPECT_EQ(upstream_.count(), 0U);
}

TEST_F(ClientTest, WhatCannotBeARequestIsRefusedBeforeTheJournalKnowsOfIt) {
  const auto refused = [&](auto change) {
    Request made = request();
    change(made);
    const auto outcome = client().send("one", made);
    return !outcome && outcome.error().code == ErrorCode::invalid;
  };
  EXPECT_TRUE(refused([](Request& r) { r.method = "GET"; }));
  EXPECT_TRUE(refused([](Request& r) { r.method = "PO ST"; }));
  EXPECT_TRUE(refused([](Request& r) { r.url = "ftp://example/"; }));
  EXPECT_TRUE(refused([](Request& r) { r.url = "/orders"; }));
  EXPECT_TRUE(refused([](Request& r) { r.url = "http://me:secret@example/"; }));
  EXPECT_TRUE(refused([](Request& r) { r.url += "#x"; }));
  EXPECT_TRUE(refused([](Request& r) { r.headers.add("Content-Length", "3"); }));
  EXPECT_TRUE(refused([](Request& r) { r.headers.add("X", "a\nb"); }));
  EXPECT_TRUE(refused([](Request& r) { r.key = ""; }));
  EXPECT_TRUE(refused([](Request& r) { r.key = "a b"; }));
  EXPECT_TRUE(journal_->list(Journal::Which::all)->empty());
  EXPECT_FALSE(client().send("", request()));
  EXPECT_FALSE(client().send("a\nb", request()));
}

TEST(Operation, IsFollowedAtTheOriginOfTheRequestOnly) {
  const std::string id = "/.well-known/einmal/operations/8e03978e-40d5-43e8-bc93-6894a57f9324";
  const auto at = [&](std::string_view base, const std::string& location) {
    return operation_url(base, location).value_or("");
  };
  EXPECT_EQ(at("http://a:80/orders?x=1", id), "http://a:80" + id);
  EXPECT_EQ(at("https://a/orders", "https://A:443" + id), "https://a:443" + id);
  EXPECT_EQ(at("https://a/orders", "http://a" + id), "");
  EXPECT_EQ(at("http://a/orders", "http://b" + id), "");
  EXPECT_EQ(at("http://a/orders", "//b" + id), "");
  EXPECT_EQ(at("http://a/orders", "http://a:81" + id), "");
  EXPECT_EQ(at("http://a/orders", "http://x@a" + id), "");
  EXPECT_EQ(at("http://a/orders", "/jobs/1"), "");
  EXPECT_EQ(at("http://a/orders", "/.well-known/einmal/operations/../../admin"), "");
  EXPECT_EQ(at("http://a/orders", "::"), "");
}

TEST(Window, DurationsAreReadAsTheGatewayWritesThem) {
  using namespace std::chrono;
  EXPECT_EQ(parse_iso8601_duration("P7D"), Duration(hours(24 * 7)));
  EXPECT_EQ(parse_iso8601_duration("PT1H30M"), Duration(minutes(90)));
  EXPECT_EQ(parse_iso8601_duration("P1DT0.5S"), Duration(hours(24)) + Duration(500'000));
  EXPECT_EQ(parse_iso8601_duration("P2W"), Duration(hours(24 * 14)));
  for (const char* bad : {"", "P", "PT", "7D", "P1Y", "P1M", "PT1", "P-1D", "PT1S2", "PT.S", "P1H",
                          "PT99999999999999999999S", "PT9999999999999H"}) {
    EXPECT_FALSE(parse_iso8601_duration(bad)) << bad;
  }
}

TEST(Patience, TheBudgetBoundsRepetitionsAndComesBackSlowly) {
  RetryBudget budget(2);
  EXPECT_TRUE(budget.take());
  EXPECT_TRUE(budget.take());
  EXPECT_FALSE(budget.take());
  for (int i = 0; i < 11; ++i) budget.first_attempt();
  EXPECT_TRUE(budget.take());
  EXPECT_FALSE(budget.take());
}

TEST(Patience, WaitsAreSpreadOverTheWholeInterval) {
  SeededRandom random(7);
  Patience patience;
  std::vector<Duration> waits;
  for (int i = 0; i < 1000; ++i) waits.push_back(wait_before(3, patience, std::nullopt, random));
  std::sort(waits.begin(), waits.end());
  EXPECT_LT(waits[100], patience.backoff_base);
  EXPECT_GT(waits[900], patience.backoff_base * 3);
  EXPECT_LE(waits.back(), patience.backoff_base * 4);
  EXPECT_LE(wait_before(1000, patience, std::nullopt, random), patience.backoff_cap);
}

}  // namespace
}  // namespace einmal::client
