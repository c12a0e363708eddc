#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "einmal/testing/certificate.hpp"
#include "support/command.hpp"
#include "support/gateway.hpp"

/// `einmal request` as shells and cron run it: exit codes, intents, and what the gateway and plain
/// Stripe-like servers answer.

namespace einmal::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class EinmalRequest : public GatewayTest {
 protected:
  std::string journal() const { return directory_.file("keys"); }

  Ran request(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"request", "--journal", journal(), "--proxy", ""});
    return run_einmal(std::move(arguments));
  }
  Ran post(const std::string& url, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"POST", url, "--json", R"({"sku":"A-1","qty":1})"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return request(arguments);
  }
  std::string gateway_url() const {
    return "http://127.0.0.1:" + std::to_string(gateway_->port()) + "/orders";
  }
  Ran order(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"-H", "X-Caller: alice", "--deadline", "20s"});
    return post(gateway_url(), more);
  }
  std::string upstream_url() const { return upstream_.url() + "/orders"; }
  std::set<std::string> keys() const {
    std::set<std::string> all;
    for (const auto& one : upstream_.requests()) all.insert(one.header("Idempotency-Key"));
    return all;
  }
};

// As a shell gives it when the variable is not set: `--intent "$ORDER"`.
TEST_F(EinmalRequest, AnEmptyNameIsAnErrorAndNotAnIntentOfItsOwn) {
  open();
  for (const char* option : {"--intent", "--journal", "--key"}) {
    const Ran ran = order({option, ""});
    EXPECT_EQ(ran.status, 2) << option;
    EXPECT_THAT(ran.errors, Not(HasSubstr("terminate"))) << option;
  }
  EXPECT_EQ(order({"--intent="}).status, 2);
  EXPECT_EQ(upstream_.count(), 0U);
}

TEST_F(EinmalRequest, WhatCannotBeMeantIsAnErrorOfUsage) {
  open();
  const auto status = [&](const char* method, const std::string& url) {
    return request({method, url, "--max-attempts", "1"}).status;
  };
  for (const char* method : {"post", "Post", "get", "Head", "GET", "delete", "a b", ""})
    EXPECT_EQ(status(method, upstream_url()), 2) << method;
  for (const char* url : {"http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://127.0.0.1:x/",
                          "http://127.0.0.1:80x/", "http://:80/", "127.0.0.1:80", "http:/127.0.0.1",
                          "file:///etc/hosts", ""})
    EXPECT_EQ(status("POST", url), 2) << url;
  for (const std::string& file : {directory_.file(""), directory_.file("nothing")})
    for (const char* option : {"-d", "--json"})
      EXPECT_EQ(request({"POST", upstream_url(), option, "@" + file}).status, 2) << file;
  EXPECT_EQ(upstream_.count(), 0U);
}

TEST_F(EinmalRequest, AKeyHeaderThatIsNoneOrASecondKeyIsAnErrorAndNothingIsSent) {
  open();
  for (const char* name : {"", "a b", "Key:", "Host", "content-length", "Transfer-Encoding"})
    EXPECT_EQ(order({"--intent", "o", "--key-header", name}).status, 2) << name;
  EXPECT_EQ(order({"--intent", "o", "--credential", "idempotency-key: k"}).status, 2);
  EXPECT_EQ(order({"--intent", "o", "-H", "Idempotency-Key: a", "--key", "b"}).status, 2);
  EXPECT_EQ(upstream_.count(), 0U);
  // Nor when it is resumed.
  EXPECT_EQ(post("http://127.0.0.1:1/", {"--intent", "o", "--max-attempts", "1"}).status, 5);
  EXPECT_EQ(request({"--resume", "--intent", "o", "-H", "Idempotency-Key: k"}).status, 2);
}

// As some supervisors start a program: its first socket would be its standard output.
TEST_F(EinmalRequest, ClosedStandardStreamsAreNotMistakenForSocketsAndFiles) {
  open();
  ChildProcess process({"/bin/sh", "-c",
                        "exec '" + sibling_program("einmal") + "' request POST " + gateway_url() +
                            " -d x -H 'X-Caller: alice' --proxy '' --deadline 20s --journal '" +
                            journal() + "' <&- >&- 2>&-"});
  const auto exit = process.wait_for_exit();
  EXPECT_TRUE(exit && exit->status == 0) << (exit ? exit->status : -1);
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(EinmalRequest, OutputThatCannotBeWrittenChangesNoVerdict) {
  open();
  const std::string program = sibling_program("einmal");
  const auto with = [&](const std::string& redirections, const std::string& more) {
    const std::string command =
        "exec '" + program + "' request POST " + gateway_url() +
        " -d x -H 'X-Caller: alice' --proxy '' --deadline 20s --intent o --journal '" + journal() +
        "' " + more + " " + redirections;
    ChildProcess process({"/bin/sh", "-c", command});
    const auto exit = process.wait_for_exit();
    return exit ? exit->status : -1;
  };
  EXPECT_EQ(with("2>/dev/full", ""), 0) << "nobody reads the words, and the exit code says it";
  for (const char* more : {"", "--json-output", "-o /dev/full", "-o /nowhere/to/be/found"})
    EXPECT_EQ(with(">/dev/full 2>/dev/full", more), 1) << more;
  EXPECT_EQ(upstream_.count(), 1U);
  EXPECT_EQ(with("", ""), 0);
  EXPECT_EQ(run_einmal({"request", "--pending", "--journal", journal()}).status, 0);
}

TEST_F(EinmalRequest, TheSameIntentIsTheSameKeyAndOneEffect) {
  open();
  const Ran first = order({"--intent", "order 1"});
  EXPECT_EQ(first.status, 0) << first.errors;
  const Ran second = order({"--intent", "order 1"});
  EXPECT_EQ(second.status, 0);
  EXPECT_EQ(second.output, first.output);
  EXPECT_THAT(second.errors, HasSubstr("from the journal"));
  EXPECT_EQ(order({"--intent", "order 2"}).status, 0);
  EXPECT_EQ(upstream_.count(), 2U);
  EXPECT_EQ(keys().size(), 2U);
}

TEST_F(EinmalRequest, ALostJournalOfTheGatewaysClientGetsTheReplay) {
  open();
  EXPECT_EQ(order({"--key", "my-key"}).status, 0);
  std::filesystem::remove(journal());
  const Ran again = order({"--key", "my-key", "--json-output"});
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.output, HasSubstr(R"("verdict":"replayed")"));
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(EinmalRequest, AnOutcomeThatNobodySawIsFour) {
  open();
  upstream_.always(Play().close());
  const Ran lost = order({"--intent", "order 1", "--max-attempts", "2", "--json-output"});
  EXPECT_EQ(lost.status, 4) << lost.errors;
  EXPECT_THAT(lost.output, HasSubstr(R"("verdict":"unknown")"));
  EXPECT_THAT(lost.output, HasSubstr(R"("why":"uncertain")"));
  EXPECT_EQ(upstream_.count(), 1U);
  const Ran pending = request({"--pending", "--json-output"});
  EXPECT_EQ(pending.status, 0);
  EXPECT_THAT(pending.output, HasSubstr(R"("intent":"order 1")"));
  EXPECT_THAT(pending.output, HasSubstr(R"("may_have_been_sent":true)"));
}

TEST_F(EinmalRequest, ResumeFinishesWhatAnOperatorHasResolved) {
  open();
  upstream_.always(Play().close());
  const Ran lost =
      order({"--intent", "order 1", "--max-attempts", "1", "--key", "k1", "--quoted-key"});
  EXPECT_EQ(lost.status, 4) << lost.errors;
  const Ran resolved =
      run_einmal({"records", "resolve", "--store", gateway_->store_url(), "--caller", "alice",
                  "--operation", "create-order", "--key", "k1", "--completed", "--status", "201",
                  "--no-body", "--evidence", "the books say so", "--yes"});
  ASSERT_EQ(resolved.status, 0) << resolved.errors;
  const Ran resumed = request({"--resume", "--json-output"});
  EXPECT_EQ(resumed.status, 0) << resumed.errors << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr(R"("verdict":"replayed")"));
  EXPECT_EQ(upstream_.count(), 1U);
  EXPECT_EQ(request({"--pending"}).output, "");
}

TEST_F(EinmalRequest, AStoredRefusalAndAnotherBodyAreThree) {
  open();
  upstream_.always(Play().answer(402, "declined"));
  const Ran declined = order({"--intent", "payment", "--key", "k1"});
  EXPECT_EQ(declined.status, 3);
  EXPECT_EQ(declined.output, "declined");
  const Ran reused = request({"POST", gateway_url(), "-H", "X-Caller: alice", "--json", "{}",
                              "--key", "k1", "--json-output"});
  EXPECT_EQ(reused.status, 3);
  EXPECT_THAT(reused.output, HasSubstr(R"("why":"mismatch")"));
}

TEST_F(EinmalRequest, WaitsForARequestInProgress) {
  open();
  auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "made"));
  const std::vector<std::string> arguments = {sibling_program("einmal"),
                                              "request",
                                              "--proxy",
                                              "",
                                              "POST",
                                              gateway_url(),
                                              "-H",
                                              "X-Caller: alice",
                                              "--json",
                                              "{}",
                                              "--key",
                                              "k1",
                                              "--json-output",
                                              "--journal"};
  auto one = arguments, two = arguments;
  one.push_back(directory_.file("keys-1"));
  two.push_back(directory_.file("keys-2"));
  ChildProcess first(one);
  ASSERT_TRUE(upstream_.wait_for(1));
  ChildProcess second(two);
  EXPECT_FALSE(second.wait_for_exit(Milliseconds(300)));
  gate->open();
  for (ChildProcess* process : {&first, &second}) {
    const auto exit = process->wait_for_exit();
    process->wait_for_output_end();
    EXPECT_TRUE(exit && exit->status == 0) << process->errors();
  }
  EXPECT_THAT(first.output(), HasSubstr(R"("verdict":"succeeded")"));
  EXPECT_THAT(second.output(), HasSubstr(R"("verdict":"replayed")"));
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(EinmalRequest, FollowsAnOperationToItsResult) {
  GatewaySetup setup;
  setup.operations += "in_flight = \"operation\"\n";
  open(setup);
  upstream_.always(Play().answer(201, "made"));
  const Ran done = order({"--intent", "order 1"});
  EXPECT_EQ(done.status, 0) << done.errors;
  EXPECT_EQ(done.output, "made");
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(EinmalRequest, AKeyOlderThanThePublishedWindowIsNotSentSilently) {
  GatewaySetup setup;
  setup.defaults = "retention = \"1s\"\n";
  setup.gateway = "discovery = \"public\"\n";
  open(setup);
  upstream_.always(Play().close());
  EXPECT_EQ(order({"--intent", "order 1", "--max-attempts", "1"}).status, 4);
  // Two minutes later; the gateway's window is a second.
  const std::vector<std::string> later = {"/usr/bin/faketime",
                                          "-f",
                                          "+2m",
                                          sibling_program("einmal"),
                                          "request",
                                          "--journal",
                                          journal(),
                                          "--proxy",
                                          "",
                                          "--resume",
                                          "--max-attempts",
                                          "1",
                                          "--json-output"};
  const auto run = [&](bool insist) {
    auto arguments = later;
    if (insist) arguments.push_back("--send-too-old");
    // The address sanitizer, if it is there, lets libfaketime be loaded before it.
    const char* given = std::getenv("ASAN_OPTIONS");
    const auto sanitizer = std::string(given != nullptr ? given : "") + ":verify_asan_link_order=0";
    ChildProcess process(arguments,
                         {{"FAKETIME_DONT_FAKE_MONOTONIC", "1"}, {"ASAN_OPTIONS", sanitizer}});
    EXPECT_TRUE(process.wait_for_exit());
    process.wait_for_output_end();
    return process.output();
  };
  EXPECT_THAT(run(false), HasSubstr(R"("why":"too_old")"));
  EXPECT_THAT(run(true), HasSubstr(R"("why":"uncertain")"));
}

TEST_F(EinmalRequest, WhereNobodyListensItIsFiveAndTheIntentStaysOpen) {
  std::uint16_t port = 0;
  {
    Listener nobody;
    port = nobody.port();
  }
  const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/";
  const Ran ran = post(url, {"--max-attempts", "2", "--intent", "one"});
  EXPECT_EQ(ran.status, 5);
  EXPECT_THAT(ran.errors, HasSubstr("not attempted (unreachable)"));
  EXPECT_THAT(request({"--pending"}).output, HasSubstr("not sent"));
  EXPECT_EQ(request({"--forget", "one"}).status, 0);
  EXPECT_EQ(request({"--pending"}).output, "");
  EXPECT_EQ(request({"--forget", "one"}).status, 1);
}

TEST_F(EinmalRequest, SpeaksTlsToWhomItTrustsAndSendsNothingToOthers) {
  const auto made = make_certificate(directory_.path().string(), "server", "IP:127.0.0.1");
  GatewaySetup setup;
  setup.store_lines =
      "[tls]\ncertificate = \"" + made.certificate + "\"\nkey = \"" + made.key + "\"\n";
  open(setup);
  const std::string url = "https://127.0.0.1:" + std::to_string(gateway_->port()) + "/orders";
  const Ran stranger = post(url, {"-H", "X-Caller: alice", "--intent", "one"});
  EXPECT_EQ(stranger.status, 5) << stranger.errors;
  EXPECT_THAT(stranger.errors, HasSubstr("not attempted (unreachable), 1 attempt,"));
  EXPECT_EQ(upstream_.begun(), 0U);
  const Ran known =
      post(url, {"-H", "X-Caller: alice", "--intent", "one", "--cacert", made.certificate});
  EXPECT_EQ(known.status, 0) << known.errors;
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(EinmalRequest, AnIntentAtWorkCannotBeForgotten) {
  auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201, "made"));
  ChildProcess working({sibling_program("einmal"), "request", "--journal", journal(), "--proxy", "",
                        "POST", upstream_url(), "--json", "{}", "--intent", "one"});
  ASSERT_TRUE(upstream_.wait_for(1));
  const Ran refused = request({"--forget", "one"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.errors, HasSubstr("at work"));
  gate->open();
  const auto exit = working.wait_for_exit();
  EXPECT_TRUE(exit && exit->status == 0);
  EXPECT_EQ(request({"--forget", "one"}).status, 0);
}

TEST_F(EinmalRequest, SpeaksWithPlainStripeLikeServers) {
  upstream_.next(Play().answer(500, "", {{"Stripe-Should-Retry", "true"}}));
  upstream_.next(Play().answer(200, "charged", {{"Idempotent-Replayed", "true"}}));
  const Ran charged = post(upstream_url(), {"--intent", "charge", "--json-output"});
  EXPECT_EQ(charged.status, 0) << charged.errors;
  EXPECT_THAT(charged.output, HasSubstr(R"("verdict":"replayed")"));
  EXPECT_EQ(keys().size(), 1U);
  EXPECT_THAT(*keys().begin(), Not(HasSubstr("\"")));
  upstream_.next(
      Play().answer(400, R"({"error":{"type":"idempotency_error","message":"other parameters"}})",
                    {{"Content-Type", "application/json"}}));
  const Ran mismatch = post(upstream_url(), {"--intent", "other"});
  EXPECT_EQ(mismatch.status, 3);
  EXPECT_THAT(mismatch.errors, HasSubstr("refused (mismatch), status 400"));
  upstream_.next(Play().answer(500, "", {{"Stripe-Should-Retry", "false"}}));
  EXPECT_EQ(post(upstream_url(), {"--intent", "third"}).status, 4);
}

TEST_F(EinmalRequest, CredentialsAreInNoFile) {
  EXPECT_EQ(post(upstream_url(), {"-H", "Authorization: Bearer s3cret-token", "--credential",
                                  "X-Tenant-Token: s3cret-tenant"})
                .status,
            0);
  EXPECT_EQ(upstream_.requests()[0].header("Authorization"), "Bearer s3cret-token");
  EXPECT_EQ(upstream_.requests()[0].header("X-Tenant-Token"), "s3cret-tenant");
  for (const auto& file : std::filesystem::directory_iterator(directory_.path())) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    EXPECT_THAT(bytes, Not(HasSubstr("s3cret"))) << file.path();
  }
}

TEST_F(EinmalRequest, WritesTheBodyToAFileAndReadsItFromOne) {
  std::ofstream(directory_.file("body")) << "line\n";
  upstream_.always(Play().answer(201, "answer"));
  const Ran ran = request({"PUT", upstream_url(), "-d", "@" + directory_.file("body"), "-o",
                           directory_.file("out"), "-s"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.output + ran.errors, "");
  EXPECT_EQ(upstream_.requests()[0].body, "line\n");
  EXPECT_EQ(upstream_.requests()[0].method, "PUT");
  std::ifstream out(directory_.file("out"));
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(out), {}}), "answer");
}

TEST_F(EinmalRequest, WrongUseIsTwoAndSendsNothing) {
  EXPECT_EQ(request({}).status, 2);
  EXPECT_EQ(request({"GET", upstream_url()}).status, 2);
  EXPECT_EQ(request({"POST", "nowhere"}).status, 2);
  EXPECT_EQ(post(upstream_url(), {"--resume"}).status, 2);
  EXPECT_EQ(post(upstream_url(), {"-H", "no colon"}).status, 2);
  EXPECT_EQ(post(upstream_url(), {"--deadline", "soon"}).status, 2);
  EXPECT_EQ(post(upstream_url(), {"--intent", "one"}).status, 0);
  EXPECT_EQ(request({"POST", upstream_url(), "--json", "{}", "--intent", "one"}).status, 2);
  EXPECT_EQ(upstream_.count(), 1U);
}

TEST_F(EinmalRequest, ADamagedJournalIsOneAndSendsNothing) {
  std::ofstream(journal()) << "";
  const Ran ran = post(upstream_url());
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.errors, HasSubstr(journal()));
  EXPECT_EQ(upstream_.count(), 0U);
}

TEST_F(EinmalRequest, TheUsersOwnJournalIsBelowTheirStateDirectory) {
  const Ran ran = run_einmal({"request", "--proxy", "", "POST", upstream_url(), "--intent", "one"},
                             {{"XDG_STATE_HOME", directory_.file("state")}});
  EXPECT_EQ(ran.status, 0) << ran.errors;
  EXPECT_TRUE(std::filesystem::exists(directory_.file("state/einmal/requests.journal")));
}

}  // namespace
}  // namespace einmal::test
