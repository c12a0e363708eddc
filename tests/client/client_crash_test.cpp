#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <mutex>

#include "einmal/client/journal.hpp"
#include "einmal/client/transport.hpp"
#include "einmal/testing/process.hpp"
#include "einmal/testing/scripted_upstream.hpp"

/// C24 with a real process: killed by -9 at every point that the client has, then run again.

namespace einmal::test {
namespace {

using client::Point;

constexpr const char* body = R"({"order":4711,"amount":250})";

/// An API that keeps its keys, and counts effects apart from requests.
class KeyedApi {
 public:
  KeyedApi() {
    upstream_.always([this](const HttpRequest& request, std::size_t) {
      // How long results are kept is asked before an intent is resumed; it does not say.
      if (request.method == "GET") return Play().answer(404);
      std::lock_guard lock(mutex_);
      const auto [at, is_new] = effects_.emplace(request.header("Idempotency-Key"), request.body);
      if (!is_new && at->second != request.body) return Play().answer(422);
      return Play().answer(201, "{}",
                           is_new ? HeaderList{} : HeaderList{{"Idempotent-Replayed", "true"}});
    });
  }
  std::string url() const { return upstream_.url() + "/refunds"; }
  ScriptedUpstream& upstream() { return upstream_; }
  std::map<std::string, std::string> effects() {
    std::lock_guard lock(mutex_);
    return effects_;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> effects_;
  ScriptedUpstream upstream_;
};

class KilledClient : public ::testing::TestWithParam<Point> {
 protected:
  /// Standard output of one run; `killed` says whether -9 ended it.
  std::string run(const std::string& point, bool& killed) {
    std::vector<std::string> arguments = {sibling_program("killable_client"),
                                          directory_.file("keys"), api_.url(), body};
    if (!point.empty()) arguments.push_back(point);
    ChildProcess process(arguments);
    const auto exit = process.wait_for_exit();
    process.wait_for_output_end();
    killed = exit && exit->signal == SIGKILL;
    EXPECT_TRUE(killed || (exit && exit->status == 0)) << process.errors();
    return process.output();
  }

  /// As the journal has it.
  bool may_have_been_sent() {
    SystemRandom random;
    auto journal = client::Journal::open(directory_.file("keys"), random, SystemClock().wall_now());
    if (!journal) throw std::runtime_error(journal.error().message);
    const auto entry = (*journal)->find("refund order 4711");
    return entry && *entry && (*entry)->progress.doubt.in_doubt;
  }

  TempDir directory_;
  KeyedApi api_;
};

TEST_P(KilledClient, SendsTheSameKeyAndBytesWhenItIsRunAgain) {
  bool killed = false;
  run(std::string(name(GetParam())), killed);
  ASSERT_TRUE(killed) << "the point was never reached";
  const auto after_kill = api_.upstream().count();
  if (GetParam() <= Point::attempt_durable) {
    EXPECT_EQ(api_.upstream().begun(), 0U);
  }
  EXPECT_EQ(may_have_been_sent(),
            GetParam() >= Point::attempt_durable && GetParam() < Point::verdict_durable);
  const std::string said = run("", killed);
  ASSERT_FALSE(killed);
  if (GetParam() >= Point::answer_began) {
    EXPECT_EQ(after_kill, 1U);
    const char* wanted = GetParam() == Point::verdict_durable ? "succeeded " : "replayed ";
    EXPECT_EQ(said.rfind(wanted, 0), 0U) << said;
  }
  const auto effects = api_.effects();
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_NE(said.find(effects.begin()->first), std::string::npos) << said;
  const auto requests = api_.upstream().requests();
  for (const auto& request : requests) {
    if (request.method == "GET") continue;
    EXPECT_EQ(request.head_bytes, requests.back().head_bytes);
    EXPECT_EQ(request.body, body);
  }
  // And once more: settled, nothing is sent.
  EXPECT_EQ(run("", killed), said);
  EXPECT_EQ(api_.upstream().count(), requests.size());
}

TEST_P(KilledClient, MayBeKilledThereAgainAndAgain) {
  bool killed = true;
  for (int i = 0; i < 5; ++i) run(std::string(name(GetParam())), killed);
  run("", killed);
  EXPECT_FALSE(killed);
  EXPECT_EQ(api_.effects().size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(AtEveryPoint, KilledClient,
                         ::testing::Values(Point::intent_durable, Point::attempt_durable,
                                           Point::connected, Point::answer_began,
                                           Point::answer_whole, Point::verdict_durable),
                         [](const auto& one) { return std::string(name(one.param)); });

// Killed at any moment at all, not only at named ones.
TEST(KilledAnywhere, AClientNeverChangesItsKey) {
  TempDir directory;
  KeyedApi api;
  const std::vector<std::string> arguments = {sibling_program("killable_client"),
                                              directory.file("keys"), api.url(), body};
  for (int i = 0; i < 40; ++i) {
    ChildProcess process(arguments);
    (void)process.wait_for_exit(Milliseconds(i));
    process.kill();
  }
  ChildProcess last(arguments);
  ASSERT_TRUE(last.wait_for_exit());
  last.wait_for_output_end();
  EXPECT_EQ(api.effects().size(), 1U) << last.errors();
  EXPECT_NE(last.output().find(api.effects().begin()->first), std::string::npos);
}

TEST(TwoClients, ShareOneJournalAndMakeOneEffectEvenOfAnApiWithoutKeys) {
  TempDir directory;
  ScriptedUpstream naive;
  auto gate = std::make_shared<Gate>();
  naive.next(Play().wait(gate).answer(201, "{}"));
  const std::vector<std::string> arguments = {sibling_program("killable_client"),
                                              directory.file("keys"), naive.url(), body};
  ChildProcess first(arguments);
  ASSERT_TRUE(naive.wait_for(1));
  ChildProcess second(arguments), third(arguments);
  EXPECT_FALSE(second.wait_for_exit(Milliseconds(300)));
  gate->open();
  for (ChildProcess* process : {&first, &second, &third}) {
    const auto exit = process->wait_for_exit();
    process->wait_for_output_end();
    ASSERT_TRUE(exit && exit->status == 0) << process->errors();
    EXPECT_EQ(process->output(), first.output());
  }
  EXPECT_EQ(naive.count(), 1U);
}

}  // namespace
}  // namespace einmal::test
