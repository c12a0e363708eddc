#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/gateway.hpp"

/// What an operator sees of a gateway process: counts that are exact, traces that can be followed,
/// and nothing that belongs to a customer.

namespace einmal::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Evidence : public GatewayTest {
 protected:
  void open_with_evidence(const std::string& limits = "") {
    log_ = directory_.file("gateway.log");
    open({.limits = limits,
          .operations = "[metrics]\nlisten = \"127.0.0.1:0\"\n[log]\nformat = \"json\"\n"
                        "level = \"debug\"\nrequests = true\nfile = \"" +
                        log_ + "\"\n[[operation]]\nname = \"create-order\"\n" +
                        "match = \"POST /orders\"\n"});
    const auto line = gateway_->process().wait_for_line("metrics on http");
    ASSERT_TRUE(line);
    metrics_port_ = static_cast<std::uint16_t>(std::stoi(line->substr(line->rfind(':') + 1)));
  }
  std::string log() const {
    std::ostringstream text;
    text << std::ifstream(log_).rdbuf();
    return text.str();
  }
  std::string scrape() const { return HttpClient(metrics_port_).get("/metrics").body; }

  std::string log_;
  std::uint16_t metrics_port_ = 0;
};

TEST_F(Evidence, CountsEachAnswerOfAScriptedRunOnce) {
  open_with_evidence("live_per_caller = 4\n");
  for (const auto* key : {"A", "B", "B", "B", "C"}) EXPECT_EQ(send(order(key)).status, 201);
  EXPECT_EQ(send(order("A", "{}")).status, 422);
  upstream_.next(Play().reset());
  EXPECT_EQ(send(order("D")).status, 504);
  EXPECT_EQ(send(order("D")).status, 504);
  EXPECT_EQ(send(order("E")).status, 429);
  EXPECT_EQ(send(order("")).status, 400);
  auto anonymous = order("A");
  std::erase_if(anonymous.headers, [](const auto& line) { return line.first == "X-Caller"; });
  EXPECT_EQ(send(anonymous).status, 403);
  const auto page = scrape();
  for (const auto* line : {
           "einmal_begins_total{outcome=\"execute\"} 4\n",
           "einmal_begins_total{outcome=\"replay\"} 2\n",
           "einmal_begins_total{outcome=\"mismatch\"} 1\n",
           "einmal_begins_total{outcome=\"uncertain\"} 1\n",
           "einmal_begins_total{outcome=\"over_quota\"} 1\n",
           "einmal_begins_total{outcome=\"in_progress\"} 0\n",
           "einmal_finishes_total{asked=\"complete\",outcome=\"recorded\"} 3\n",
           "einmal_finishes_total{asked=\"mark_uncertain\",outcome=\"recorded\"} 1\n",
           "einmal_uncertain_entered_total{cause=\"outcome_unknown\"} 1\n",
       })
    EXPECT_THAT(page, HasSubstr(line));
}

TEST_F(Evidence, HoldsNothingOfKeysCallersBodiesAndCredentials) {
  open_with_evidence();
  const std::vector<std::string> secrets = {"secret-key",   "secret-caller", "secret-body",
                                            "secret-token", "secret-answer", "secret-cookie",
                                            "secret-query"};
  auto request = order("secret-key-1", R"({"note":"secret-body"})",
                       {{"Authorization", "Bearer secret-token"}, {"Cookie", "s=secret-cookie"}});
  for (auto& line : request.headers) {
    if (line.first == "X-Caller") line.second = "secret-caller";
  }
  request.target += "?t=secret-query";
  const Play answered = Play().answer(201, "secret-answer", {{"Set-Cookie", "s=secret-cookie"}});
  upstream_.always(answered);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(send(request).status, 201);
  auto other = request;
  other.body = R"({"note":"secret-body 2"})";
  EXPECT_EQ(send(other).status, 422);
  auto unusable = request;
  unusable.body = R"({"note":"secret-body","note":1})";
  EXPECT_EQ(send(unusable).status, 400);
  upstream_.next(Play().send("HTTP/1.1 201 secret-answer\r\nX: secret-answer\r\n").reset());
  for (auto& line : request.headers) {
    if (line.first == "Idempotency-Key") line.second = "secret-key-2";
  }
  EXPECT_EQ(send(request).status, 504);
  auto broken = request;
  broken.headers.emplace_back("Idempotency-Key", "secret-key 3");
  EXPECT_EQ(send(broken).status, 400);
  EXPECT_TRUE(eventually([&] { return log().find("422") != std::string::npos; }));
  gateway_->process().signal(SIGTERM);
  EXPECT_EQ(gateway_->process().wait_for_exit(), Exit{});
  for (const auto& secret : secrets) {
    EXPECT_THAT(log(), Not(HasSubstr(secret)));
    EXPECT_THAT(gateway_->process().errors(), Not(HasSubstr(secret)));
  }
}

TEST_F(Evidence, NamesTheTraceThatARequestCameWithAndPassesItOn) {
  open_with_evidence();
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  auto request = order("K");
  request.headers.emplace_back("traceparent", "00-" + trace + "-00f067aa0ba902b7-01");
  request.headers.emplace_back("tracestate", "vendor=1");
  EXPECT_EQ(send(request).status, 201);
  EXPECT_EQ(upstream_.requests().front().header("traceparent"),
            "00-" + trace + "-00f067aa0ba902b7-01");
  EXPECT_EQ(upstream_.requests().front().header("tracestate"), "vendor=1");
  EXPECT_TRUE(eventually([&] { return log().find(trace) != std::string::npos; }));
}

TEST_F(Evidence, IsServedWithoutTheStoreAndSaysWhetherItIsReady) {
  open_with_evidence();
  EXPECT_EQ(HttpClient(metrics_port_).get("/healthz").status, 200);
  EXPECT_EQ(HttpClient(metrics_port_).get("/readyz").status, 200);
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "made"));
  RawClient client(gateway_->port());
  client.send(order("K"));
  ASSERT_TRUE(upstream_.wait_for(1));
  EXPECT_THAT(scrape(), HasSubstr("einmal_executions 1\n"));
  gateway_->process().signal(SIGTERM);
  EXPECT_TRUE(eventually([&] { return HttpClient(metrics_port_).get("/readyz").status == 503; }));
  EXPECT_EQ(HttpClient(metrics_port_).get("/healthz").status, 200) << "it drains, it is not dead";
  gate->open();
  EXPECT_EQ(client.read_answer().body, "made");
  EXPECT_EQ(gateway_->process().wait_for_exit(), Exit{});
}

}  // namespace
}  // namespace einmal::test
