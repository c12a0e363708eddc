#include <fstream>

#include "einmal/gateway/gateway_fixture.hpp"
#include "einmal/gateway/outcome_tokens.hpp"

/// Outcomes that somebody with a token reports.

namespace einmal::test {
namespace {

class ReportedOutcomes : public GatewayTest {
 protected:
  ReportedOutcomes() {
    std::ofstream(directory_.file("tokens")) << "# of the webhook receiver\n"
                                             << token_ << "\nanother-token-of-more-than-32-bytes\n";
    config_.outcome_tokens = directory_.file("tokens");
  }
  /// Leaves an operation with an unknown outcome; its resource.
  std::string unknown(const std::string& key) {
    upstream_.next(Play().reset());
    const auto answer = send_order(key);
    EXPECT_EQ(answer.member("reason"), "outcome-uncertain");
    return answer.member("operation");
  }
  HttpAnswer report(const std::string& operation, const std::string& body,
                    const std::string& authorization = std::string("Bearer ") + token_) {
    HttpRequest request;
    request.target = operation + "/outcome";
    request.body = body;
    request.headers = {{"Content-Type", "application/json"}};
    if (!authorization.empty()) request.headers.emplace_back("Authorization", authorization);
    return send(request);
  }
  static constexpr auto token_ = "0123456789abcdef0123456789abcdef";
  static constexpr auto done_ =
      R"({"state":"completed","status":201,"headers":{"Location":"/orders/7"},"body":"made",)"
      R"("evidence":"webhook evt_1"})";
};

TEST_F(ReportedOutcomes, AreReplayedToWhoeverRepeatsTheRequest) {
  start();
  const auto operation = unknown("K1");
  const auto accepted = report(operation, done_);
  EXPECT_EQ(accepted.status, 200) << accepted.body;
  EXPECT_EQ(accepted.member("state"), "completed");
  const auto repeat = send_order("K1");
  EXPECT_EQ(repeat.status, 201);
  EXPECT_EQ(repeat.body, "made");
  EXPECT_EQ(repeat.header("Location"), "/orders/7");
  EXPECT_EQ(repeat.header("Idempotency-Status"), "resolved");
  EXPECT_EQ(report(operation, done_).status, 200) << "the same report again changes nothing";
  const auto other =
      report(operation, R"({"state":"failed","status":402,"evidence":"webhook evt_2"})");
  EXPECT_EQ(other.status, 409);
  EXPECT_EQ(other.member("reason"), "outcome-conflict");
  EXPECT_EQ(upstream_.effects("K1"), 1U);

  const auto rows = std::get<answer::AuditRows>(
                        *einmal::ask(*store_, request::ReadAudit{std::nullopt, std::nullopt, 100}))
                        .rows;
  EXPECT_EQ(rows.back().actor.who, "outcome report");
  EXPECT_EQ(rows.back().actor.evidence, "webhook evt_1");
}

TEST_F(ReportedOutcomes, AreTakenFromHoldersOfATokenOnly) {
  start();
  const auto operation = unknown("K1");
  for (const std::string authorization :
       {"", "Bearer", "Bearer wrong", "Basic 0123456789abcdef0123456789abcdef",
        "Bearer 0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef"}) {
    const auto refused = report(operation, done_, authorization);
    EXPECT_EQ(refused.status, 401) << authorization;
    EXPECT_EQ(refused.header("WWW-Authenticate"), "Bearer") << authorization;
  }
  EXPECT_EQ(send_order("K1").member("reason"), "outcome-uncertain");
  EXPECT_EQ(report(operation, done_, "bearer another-token-of-more-than-32-bytes").status, 200);
}

TEST_F(ReportedOutcomes, NameTheGenerationOrTakeTheOneThatIsThere) {
  start();
  const auto operation = unknown("K1");
  const auto token = upstream_.requests().front().header("Einmal-Fencing-Token");
  const auto with = [&](const std::string& generation) {
    return report(operation, R"({"state":"completed","status":200,"evidence":"e","generation":)" +
                                 generation + "}");
  };
  const auto stale = with(std::to_string(std::stoull(token) + 1));
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(send_order("K1").member("reason"), "outcome-uncertain");
  EXPECT_EQ(with(token).status, 200);
}

TEST_F(ReportedOutcomes, OfOperationsThatStillRunAreLeftToTheirOwner) {
  start();
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "by the owner"));
  RawClient client(gateway_->port());
  client.send(order("K1"));
  ASSERT_TRUE(upstream_.wait_for(1));
  const auto operation = send_order("K1").member("operation");
  EXPECT_EQ(report(operation, done_).member("reason"), "outcome-conflict");
  gate->open();
  EXPECT_EQ(client.read_answer().body, "by the owner");
  EXPECT_EQ(report(operation, done_).status, 200) << "it says the same";
  EXPECT_EQ(send_order("K1").body, "by the owner");
}

TEST_F(ReportedOutcomes, ThatAreNoneAreRefusedAndChangeNothing) {
  start();
  const auto operation = unknown("K1");
  for (const auto* body : {
           "",
           "{",
           "[]",
           "{}",
           R"({"state":"completed","status":201})",
           R"({"state":"completed","evidence":"e"})",
           R"({"status":201,"evidence":"e"})",
           R"({"state":"freed","status":200,"evidence":"e"})",
           R"({"state":"completed","status":402,"evidence":"e"})",
           R"({"state":"failed","status":201,"evidence":"e"})",
           R"({"state":"completed","status":"201","evidence":"e"})",
           R"({"state":"completed","status":99,"evidence":"e"})",
           R"({"state":"completed","status":200,"evidence":""})",
           R"({"state":"completed","status":200,"evidence":"e","body":1})",
           R"({"state":"completed","status":200,"evidence":"e","headers":[]})",
           R"({"state":"completed","status":200,"evidence":"e","headers":{"A":1}})",
           R"({"state":"completed","status":200,"evidence":"e","headers":{"A b":"1"}})",
           R"({"state":"completed","status":200,"evidence":"e","headers":{"A":"1\r\nB: 2"}})",
           R"({"state":"completed","status":200,"evidence":"e","generation":0})",
           R"({"state":"completed","status":200,"evidence":"e","more":0})",
       }) {
    const auto refused = report(operation, body);
    EXPECT_EQ(refused.status, 400) << body;
    EXPECT_EQ(refused.member("reason"), "outcome-invalid") << body;
    EXPECT_NE(refused.member("detail"), "") << body;
  }
  EXPECT_EQ(report(operation, std::string(5 << 20, ' ')).status, 413);
  EXPECT_EQ(report(operation + "0", done_).status, 404);
  EXPECT_EQ(report("/.well-known/einmal/operations/00000000000000000000000000000000", done_).status,
            404);
  EXPECT_EQ(HttpClient(gateway_->port()).get(operation + "/outcome").status, 405);
  EXPECT_EQ(send_order("K1").member("reason"), "outcome-uncertain");
}

TEST_F(ReportedOutcomes, HeadersThatAreNeverReplayedAreNotStored) {
  start();
  const auto operation = unknown("K1");
  EXPECT_EQ(report(operation, R"({"state":"completed","status":201,"evidence":"e","headers":)"
                              R"({"Set-Cookie":"a=b","Idempotency-Status":"x","X-Kept":"1"}})")
                .status,
            200);
  const auto repeat = send_order("K1");
  EXPECT_EQ(repeat.header("Set-Cookie"), "");
  EXPECT_EQ(repeat.header("Idempotency-Status"), "resolved");
  EXPECT_EQ(repeat.header("X-Kept"), "1");
}

TEST_F(ReportedOutcomes, AreOffUnlessConfigured) {
  config_.outcome_tokens.reset();
  start();
  const auto operation = unknown("K1");
  EXPECT_EQ(report(operation, done_).status, 404);
}

TEST_F(ReportedOutcomes, NeedTokensThatCannotBeGuessed) {
  const auto refused = [&](const std::string& text) {
    std::ofstream(directory_.file("tokens")) << text;
    const auto tokens = gateway::OutcomeTokens::read(directory_.file("tokens"));
    return tokens ? std::string() : tokens.error().message;
  };
  EXPECT_NE(refused("").find("no token"), std::string::npos);
  EXPECT_NE(refused("# x\n\nshort-secret\n").find("tokens:3"), std::string::npos);
  EXPECT_EQ(refused("short-secret\n").find("short-secret"), std::string::npos);
  EXPECT_EQ(refused("0123456789abcdef0123456789abcdef\r\n"), "");
}

}  // namespace
}  // namespace einmal::test
