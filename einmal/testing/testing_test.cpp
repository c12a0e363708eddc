#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>

#include "einmal/testing/process.hpp"
#include "einmal/testing/raw_client.hpp"
#include "einmal/testing/scripted_upstream.hpp"
#include "einmal/testing/tcp_gate.hpp"

namespace einmal::test {
namespace {

using ::testing::HasSubstr;

TEST(ScriptedUpstream, counts_complete_requests_and_answers_as_told) {
  ScriptedUpstream upstream;
  const HttpClient client(upstream.port());
  EXPECT_EQ(client.post("/orders", "one", {{"Idempotency-Key", "K"}}).status, 201);
  upstream.next(Play().answer(402, "no", {{"X-Why", "card"}}));
  const auto refused = client.post("/orders", "two", {{"Idempotency-Key", "\"K\""}});
  EXPECT_EQ(refused.status, 402);
  EXPECT_EQ(refused.body, "no");
  EXPECT_EQ(refused.header("x-why"), "card");
  EXPECT_EQ(upstream.count(), 2u);
  EXPECT_EQ(upstream.effects("K"), 2u);
  EXPECT_EQ(upstream.requests()[1].body, "two");
}

TEST(ScriptedUpstream, a_request_that_broke_off_is_begun_but_not_counted) {
  ScriptedUpstream upstream;
  {
    RawClient client(upstream.port());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345");
    EXPECT_TRUE(eventually([&] { return upstream.begun() == 1; }));
  }
  EXPECT_EQ(HttpClient(upstream.port()).post("/", "x").status, 201);
  EXPECT_EQ(upstream.count(), 1u);
  EXPECT_EQ(upstream.begun(), 2u);
}

TEST(ScriptedUpstream, waits_at_a_gate_truncates_and_resets) {
  ScriptedUpstream upstream;
  const auto gate = std::make_shared<Gate>();
  upstream.next(
      Play().send("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf").wait(gate).close());
  RawClient client(upstream.port());
  client.send(HttpRequest{});
  EXPECT_THAT(client.read_some().bytes, HasSubstr("201"));
  gate->open();
  EXPECT_EQ(client.read_to_end().kind, Incoming::Kind::end);

  upstream.next(Play().send("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf").reset());
  EXPECT_EQ(HttpClient(upstream.port()).post("/", "x").ended, Ended::reset);
  upstream.next(Play::after_reading_only(5).reset());
  EXPECT_EQ(HttpClient(upstream.port()).post("/", "x").ended, Ended::reset);
  EXPECT_EQ(upstream.count(), 2u);
}

TEST(MessageReader, reads_chunks_trailers_and_interim_answers) {
  ScriptedUpstream upstream;
  upstream.next(
      Play().send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nX-Sum: 6\r\n\r\n"));
  const auto answer = HttpClient(upstream.port()).get("/");
  EXPECT_TRUE(answer.is_whole());
  EXPECT_EQ(answer.body, "hello!");
  EXPECT_EQ(answer.trailers.first("x-sum"), "6");
  ASSERT_EQ(answer.interim.size(), 1u);
  EXPECT_THAT(answer.interim[0], HasSubstr("103"));
}

TEST(MessageReader, reads_chunked_requests_on_a_connection_that_stays_open) {
  ScriptedUpstream upstream;
  RawClient client(upstream.port());
  for (int i = 0; i < 3; ++i) {
    client.send(
        "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\n\r\n");
    EXPECT_EQ(client.read_answer().status, 201);
  }
  EXPECT_EQ(upstream.connections(), 1u);
  EXPECT_EQ(upstream.requests()[2].body, "abc");
}

TEST(TcpGate, relays_slices_and_cuts_at_a_byte) {
  ScriptedUpstream upstream;
  TcpGate gate(upstream.port());
  const HttpClient client(gate.port());
  EXPECT_EQ(client.post("/", "x").status, 201);
  gate.slice(3);
  EXPECT_TRUE(client.post("/", std::string(1000, 'y')).is_whole());
  gate.slice(0);
  gate.cut_to_client_after(20);
  const auto cut = client.post("/", "x");
  EXPECT_EQ(cut.ended, Ended::reset);
  gate.cut_to_client_after(std::nullopt);
  gate.refuse(true);
  // The reset may come while the connection is still being made.
  const auto refused = [&] {
    try {
      return client.post("/", "x").status == 0;
    } catch (const std::exception&) {
      return true;
    }
  };
  EXPECT_TRUE(refused());
  gate.refuse(false);
  EXPECT_EQ(client.post("/", "x").status, 201);
  EXPECT_EQ(upstream.count(), 4u);
}

TEST(TcpGate, stalls_and_goes_on_and_cuts_open_connections) {
  ScriptedUpstream upstream;
  TcpGate gate(upstream.port());
  gate.stall(true);
  RawClient client(gate.port());
  client.send(HttpRequest{});
  EXPECT_EQ(client.read_some(Milliseconds(50)).kind, Incoming::Kind::timeout);
  EXPECT_EQ(upstream.begun(), 0u);
  gate.stall(false);
  EXPECT_EQ(client.read_answer().status, 201);
  gate.cut();
  EXPECT_EQ(client.read_some().kind, Incoming::Kind::reset);
}

TEST(ChildProcess, waits_for_a_line_and_tells_how_it_ended) {
  ChildProcess child({"/bin/sh", "-c", "echo first; echo ready $X; exit 3"}, {{"X", "now"}});
  EXPECT_EQ(child.wait_for_line("ready"), "ready now");
  EXPECT_EQ(child.wait_for_exit(), (Exit{3, 0}));
}

TEST(ChildProcess, can_be_stopped_resumed_and_killed) {
  ChildProcess child({"/bin/sleep", "1000"});
  EXPECT_TRUE(child.is_running());
  child.stop();
  EXPECT_TRUE(child.is_stopped());
  child.resume();
  EXPECT_TRUE(eventually([&] { return !child.is_stopped(); }));
  child.kill();
  EXPECT_EQ(child.wait_for_exit(), (Exit{-1, SIGKILL}));
}

TEST(TempDir, is_gone_afterwards) {
  std::filesystem::path path;
  {
    const TempDir directory;
    path = directory.path();
    EXPECT_TRUE(std::filesystem::is_directory(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RefusedPort, refuses) { EXPECT_THROW(Socket::connect(refused_port()), std::runtime_error); }

}  // namespace
}  // namespace einmal::test
