#include <fstream>

#include "einmal/gateway/gateway_fixture.hpp"

/// Who is asked before a look-up, and what the answers do.

namespace einmal::test {
namespace {

class AskedCallers : public GatewayTest {
 protected:
  /// Lets in whoever has a token, under the name in it; counts as a request of `service_`.
  AskedCallers() {
    service_.always([](const HttpRequest& request, std::size_t) {
      const auto token = request.header("Authorization");
      if (token.empty()) return Play().answer(401, "", {{"WWW-Authenticate", "Bearer realm=x"}});
      if (token == "revoked") return Play().answer(403);
      if (token == "broken") return Play().answer(500);
      return Play().answer(200, "", {{"X-Account", token}});
    });
  }

  void ask_for_callers() {
    config_.caller.kind = CallerKind::auth_request;
    config_.caller.argument = service_.url() + "/who?x=1";
    config_.caller.answer_header = "X-Account";
  }
  HttpAnswer send_as(const std::string& token, const std::string& key) {
    auto request = order(key);
    request.target = "/orders?from=here";
    if (!token.empty()) request.headers.emplace_back("Authorization", token);
    return send(request);
  }

  ScriptedUpstream service_;
};

TEST_F(AskedCallers, AreNamedByTheServiceThatSawTheirCredentials) {
  ask_for_callers();
  start();
  EXPECT_EQ(send_as("alice", "K1").header("Idempotency-Status"), "executed");
  EXPECT_EQ(send_as("alice", "K1").header("Idempotency-Status"), "replayed");
  EXPECT_EQ(send_as("bob", "K1").header("Idempotency-Status"), "executed");
  const auto asked = service_.requests().front();
  EXPECT_EQ(asked.method, "GET");
  EXPECT_EQ(asked.target, "/who?x=1");
  EXPECT_EQ(asked.header("X-Original-Method"), "POST");
  EXPECT_EQ(asked.header("X-Original-URI"), "/orders?from=here");
  EXPECT_EQ(asked.header("Authorization"), "alice");
  EXPECT_EQ(asked.count("Content-Length"), 0U);
  EXPECT_TRUE(asked.body.empty());
}

TEST_F(AskedCallers, AreRefusedAsTheServiceSays) {
  ask_for_callers();
  start();
  const auto unknown = send_as("", "K1");
  EXPECT_EQ(unknown.status, 401);
  EXPECT_EQ(unknown.header("WWW-Authenticate"), "Bearer realm=x");
  EXPECT_EQ(unknown.member("reason"), "caller-missing");
  EXPECT_EQ(send_as("revoked", "K1").status, 403);
  const auto untold = send_as("broken", "K1");
  EXPECT_EQ(untold.status, 503);
  EXPECT_EQ(untold.member("reason"), "caller-unavailable");
  service_.next(Play().close());
  EXPECT_EQ(send_as("alice", "K1").member("reason"), "caller-unavailable");
  EXPECT_EQ(upstream_.begun(), 0U);
}

TEST_F(AskedCallers, MayLoseTheirLeaveBetweenARequestAndItsReplay) {
  operation().authorize = service_.url() + "/may";
  start();
  auto request = order("K1");
  request.headers.emplace_back("Authorization", "ok");
  EXPECT_EQ(send(request).header("Idempotency-Status"), "executed");
  EXPECT_EQ(send(request).header("Idempotency-Status"), "replayed");
  request.headers.back().second = "revoked";
  const auto refused = send(request);
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.header("Idempotent-Replayed"), "");
  EXPECT_EQ(refused.body.find("id"), std::string::npos);
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(AskedCallers, MayBeTranslatedFromCredentialsByAFile) {
  // SHA-256 of "first" and of "second": two credentials of one account.
  const auto file = directory_.file("callers");
  std::ofstream(file)
      << "sha256:a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e acme\n"
      << "sha256:16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4 acme\n";
  config_.caller.argument = "X-Api-Key";
  config_.caller.map = file;
  start();
  auto request = order("K1");
  request.headers.emplace_back("X-Api-Key", "first");
  EXPECT_EQ(send(request).header("Idempotency-Status"), "executed");
  request.headers.back().second = "second";
  EXPECT_EQ(send(request).header("Idempotency-Status"), "replayed");
  request.headers.back().second = "third";
  EXPECT_NE(send(request).status / 100, 2);
}

}  // namespace
}  // namespace einmal::test
