#include <gtest/gtest.h>

#include <atomic>
#include <boost/json.hpp>
#include <fstream>
#include <future>
#include <iterator>
#include <random>
#include <regex>
#include <sstream>

#include "einmal/client/client.hpp"
#include "einmal/testing/process.hpp"
#include "einmal/testing/scripted_upstream.hpp"
#include "einmal/testing/virtual_clock.hpp"

/// Runs clients/behaviour.json, which is also the TypeScript client's, over real sockets and a real
/// journal; only the waits are virtual.

namespace einmal::client {
namespace {

namespace json = boost::json;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Play;

json::object read_vectors() {
  std::ifstream file(EINMAL_SOURCE_DIR "/clients/behaviour.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return json::parse(text).as_object();
}

std::string text(const json::value& value) { return std::string(value.as_string()); }

std::int64_t number(const json::object& in, std::string_view name, std::int64_t otherwise) {
  const auto* found = in.if_contains(name);
  return found == nullptr ? otherwise : found->as_int64();
}

test::HeaderList header_list(const json::object& step) {
  test::HeaderList headers;
  if (const auto* given = step.if_contains("headers")) {
    for (const auto& [name, value] : given->as_object())
      headers.emplace_back(std::string(name), text(value));
  }
  return headers;
}

std::string body_of(const json::object& step) {
  const auto* body = step.if_contains("body");
  return body == nullptr ? std::string() : text(*body);
}

class VirtualPause final : public Pause {
 public:
  explicit VirtualPause(testing::VirtualClock& clock) : clock_(clock) {}
  void pause(Duration time) override {
    clock_.advance(time);
    waits.push_back(time);
  }
  std::vector<Duration> waits;

 private:
  testing::VirtualClock& clock_;
};

/// The script's sequence of steps for attempts or polls: the last repeats for ever.
class Script {
 public:
  explicit Script(const json::value* steps) {
    if (steps != nullptr) steps_ = steps->as_array();
  }
  const json::object& step(std::size_t index) const {
    return steps_[std::min(index, steps_.size() - 1)].as_object();
  }
  bool empty() const { return steps_.empty(); }

 private:
  json::array steps_;
};

/// libcurl as the product uses it. Attempts that the script refuses go to a port where nothing
/// listens.
class ScriptedTransport final : public Transport {
 public:
  ScriptedTransport(Script script, std::string upstream)
      : attempts_script_(std::move(script)), upstream_(std::move(upstream)) {
    CurlOptions options;
    options.proxy = "";
    curl_ = make_curl_transport(options);
    test::Listener listener;
    nobody_ = "http://127.0.0.1:" + std::to_string(listener.port());
  }

  Exchange send(const WireRequest& request, Duration time, Watcher* watcher) override {
    WireRequest actual = request;
    if (request.method != "GET") {
      const std::size_t index = attempts++;
      if (attempts_script_.step(index).contains("refused"))
        actual.url = nobody_ + request.url.substr(upstream_.size());
    }
    return curl_->send(actual, time, watcher);
  }
  std::atomic<std::size_t> attempts{0};

 private:
  Script attempts_script_;
  std::string upstream_, nobody_;
  std::unique_ptr<Transport> curl_;
};

class BehaviourCase {
 public:
  BehaviourCase(const json::object& file, const json::object& one)
      : file_(file),
        case_(one),
        expect_(one.at("expect").as_object()),
        attempts_(one.if_contains("server")),
        polls_(one.if_contains("polls")),
        pause_(clock_),
        transport_(attempts_, upstream_.url()) {
    upstream_.always([this](const test::HttpRequest& request, std::size_t) {
      return request.method == "GET" ? play_get(request) : play(attempts_, transport_.attempts - 1);
    });
  }

  void run() {
    auto journal = Journal::open(directory_.file("journal"), random_, clock_.wall_now());
    ASSERT_TRUE(journal) << journal.error().message;
    prepare(**journal);
    Client client({**journal, transport_, clock_, random_, pause_}, options());
    auto outcome = client.send("order 1", request());
    ASSERT_TRUE(outcome) << outcome.error().message;
    check(*outcome);
    check_wire(outcome->key);
    check_journal(**journal, *outcome);
  }

 private:
  Play play_get(const test::HttpRequest& request) {
    if (request.target == "/.well-known/idempotency") {
      const auto* discovery = case_.if_contains("discovery");
      if (discovery == nullptr) return Play().answer(404);
      return Play().answer(200, json::serialize(*discovery),
                           {{"Content-Type", "application/json"}});
    }
    poll_targets_.push_back(request.target);
    if (polls_.empty()) return Play().answer(500);
    return play(polls_, poll_targets_.size() - 1);
  }

  Play play(const Script& script, std::size_t index) {
    const auto& step = script.step(index);
    if (step.contains("lost")) return Play().close();
    if (step.contains("reset")) return Play().reset();
    if (step.contains("stall")) return Play().stall();
    if (const auto* raw = step.if_contains("raw")) return Play().send(text(*raw)).close();
    if (const auto* whole = step.if_contains("truncated")) {
      const auto& answer = whole->as_object();
      const std::string body = body_of(answer);
      std::string bytes = "HTTP/1.1 " + std::to_string(number(answer, "status", 0)) + " X\r\n";
      for (const auto& [name, value] : header_list(answer)) bytes += name + ": " + value + "\r\n";
      bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
      return Play().send(bytes + body.substr(0, body.size() / 2)).close();
    }
    const auto& answer = step.at("answer").as_object();
    Play play;
    if (const auto delay = number(step, "delay_ms", 0); delay != 0) {
      auto gate = std::make_shared<test::Gate>();
      delays_.push_back(std::async(std::launch::async, [gate, delay] {
        std::promise<void>().get_future().wait_for(milliseconds(delay));  // the script's own time
        gate->open();
      }));
      play.wait(gate);
    }
    return play.answer(static_cast<int>(number(answer, "status", 0)), body_of(answer),
                       header_list(answer));
  }

  Request request() const {
    const auto& given = file_.at("request").as_object();
    Request request;
    request.method = text(given.at("method"));
    request.url = upstream_.url() + text(given.at("path"));
    for (const auto& [name, value] : given.at("headers").as_object())
      request.headers.add(std::string(name), text(value));
    request.body = text(given.at("body"));
    return request;
  }

  ClientOptions options() const {
    json::object settings = file_.at("settings").as_object();
    if (const auto* own = case_.if_contains("settings")) {
      for (const auto& [name, value] : own->as_object()) settings[name] = value;
    }
    ClientOptions options;
    auto& patience = options.patience;
    patience.max_attempts = static_cast<int>(number(settings, "max_attempts", 0));
    patience.backoff_base = milliseconds(number(settings, "backoff_base_ms", 0));
    patience.backoff_cap = milliseconds(number(settings, "backoff_cap_ms", 0));
    patience.deadline = milliseconds(number(settings, "deadline_ms", 0));
    patience.attempt_timeout = milliseconds(number(settings, "attempt_timeout_ms", 0));
    options.retry_budget = static_cast<double>(number(settings, "retry_budget", 0));
    return options;
  }

  void prepare(Journal& journal) {
    const auto* before = case_.if_contains("before");
    if (before == nullptr) return;
    const auto& given = before->as_object();
    const Request sent = request();
    Intent intent{"order 1",
                  "11111111-2222-4333-8444-555555555555",
                  "Idempotency-Key",
                  KeyStyle::bare,
                  sent.method,
                  sent.url,
                  sent.headers,
                  sent.body,
                  {}};
    intent.created = clock_.wall_now() - seconds(number(given, "created_ago_s", 0));
    auto begun = journal.begin(intent);
    ASSERT_TRUE(begun) << begun.error().message;
    Entry entry = std::get<Entry>(*begun);
    entry.progress.attempts = static_cast<int>(number(given, "attempts", 0));
    entry.progress.doubt.in_doubt = given.at("in_doubt").as_bool();
    if (given.contains("first_sent_ago_s"))
      entry.progress.first_sent = clock_.wall_now() - seconds(number(given, "first_sent_ago_s", 0));
    ASSERT_TRUE(journal.save(entry));
    earlier_key_ = intent.key;
  }

  void check(const Outcome& outcome) {
    EXPECT_EQ(name(outcome.verdict), text(expect_.at("verdict"))) << outcome.detail;
    if (const auto* wanted = expect_.if_contains("why")) {
      EXPECT_EQ(name(why(outcome.verdict)), text(*wanted));
    }
    if (expect_.contains("attempts")) {
      EXPECT_EQ(outcome.attempts, number(expect_, "attempts", -1));
      EXPECT_EQ(transport_.attempts, static_cast<std::size_t>(outcome.attempts));
    }
    if (expect_.contains("status")) {
      const Answer* answer = answer_of(outcome.verdict);
      ASSERT_NE(answer, nullptr);
      EXPECT_EQ(answer->status, number(expect_, "status", -1));
    }
    if (earlier_key_) {
      EXPECT_EQ(outcome.key, *earlier_key_);
    }
    if (const auto* waits = expect_.if_contains("waits")) check_waits(waits->as_array());
    if (expect_.contains("polls")) {
      EXPECT_EQ(poll_targets_.size(), static_cast<std::size_t>(number(expect_, "polls", -1)));
    }
    if (const auto* targets = expect_.if_contains("poll_targets")) {
      std::vector<std::string> wanted;
      for (const auto& target : targets->as_array()) wanted.push_back(text(target));
      EXPECT_EQ(poll_targets_, wanted);
    }
  }

  void check_waits(const json::array& wanted) const {
    ASSERT_EQ(pause_.waits.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_GE(pause_.waits[i], milliseconds(wanted[i].as_array()[0].as_int64())) << "wait " << i;
      EXPECT_LE(pause_.waits[i], milliseconds(wanted[i].as_array()[1].as_int64())) << "wait " << i;
    }
  }

  /// Every request of the case: the same key, the same bytes, and as many as were reported.
  void check_wire(const std::string& key) const {
    const std::string body = text(file_.at("request").as_object().at("body"));
    std::string head;
    std::int64_t sent = 0;
    for (const auto& request : upstream_.requests()) {
      if (request.method == "GET") continue;
      ++sent;
      EXPECT_EQ(request.header("Idempotency-Key"), key);
      EXPECT_EQ(request.count("Idempotency-Key"), 1U);
      EXPECT_EQ(request.body, body);
      if (!head.empty()) {
        EXPECT_EQ(request.head_bytes, head);
      }
      head = request.head_bytes;
    }
    const std::int64_t wanted = number(expect_, "requests", number(expect_, "attempts", sent));
    EXPECT_EQ(sent, wanted);
  }

  /// A second call: what is settled is not sent again, and the key is the same for ever.
  void check_journal(Journal& journal, const Outcome& outcome) {
    auto entry = journal.find("order 1");
    ASSERT_TRUE(entry && *entry);
    EXPECT_EQ((*entry)->intent.key, outcome.key);
    ASSERT_TRUE((*entry)->progress.verdict);
    EXPECT_EQ(name(*(*entry)->progress.verdict), name(outcome.verdict));
    EXPECT_EQ((*entry)->progress.is_settled(), is_settled(outcome.verdict));
    EXPECT_EQ((*entry)->progress.doubt.in_doubt,
              std::holds_alternative<verdict::Unknown>(outcome.verdict));
    if (!is_settled(outcome.verdict) || why(outcome.verdict) == Why::rejected) return;
    const std::size_t before = transport_.attempts;
    Client client({journal, transport_, clock_, random_, pause_}, options());
    auto again = client.send("order 1", request());
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_TRUE(again->from_journal);
    EXPECT_EQ(name(again->verdict), name(outcome.verdict));
    EXPECT_EQ(again->key, outcome.key);
    EXPECT_EQ(answer_of(again->verdict)->body, answer_of(outcome.verdict)->body);
    EXPECT_EQ(transport_.attempts, before);
  }

  const json::object& file_;
  const json::object& case_;
  const json::object& expect_;
  Script attempts_, polls_;
  test::TempDir directory_;
  testing::VirtualClock clock_;
  SystemRandom random_;
  VirtualPause pause_;
  std::vector<std::string> poll_targets_;
  std::vector<std::future<void>> delays_;
  test::ScriptedUpstream upstream_;
  ScriptedTransport transport_;
  std::optional<std::string> earlier_key_;
};

class Behaviour : public ::testing::TestWithParam<std::string> {};

const json::object& vectors() {
  static const json::object file = read_vectors();
  return file;
}

TEST_P(Behaviour, IsThatOfTheSharedVectors) {
  for (const auto& one : vectors().at("cases").as_array()) {
    if (text(one.as_object().at("name")) != GetParam()) continue;
    SCOPED_TRACE(text(one.as_object().at("description")));
    BehaviourCase(vectors(), one.as_object()).run();
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& one : vectors().at("cases").as_array())
    all.push_back(text(one.as_object().at("name")));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Vectors, Behaviour, ::testing::ValuesIn(names()),
                         [](const auto& one) { return one.param; });

TEST(BehaviourVectors, AreThereAndOfTheFormatThatThisTestReads) {
  EXPECT_EQ(vectors().at("format").as_int64(), 1);
  EXPECT_EQ(text(vectors().at("clock")), "2024-01-01T00:00:00Z");
  EXPECT_GE(names().size(), 100U);
}

}  // namespace
}  // namespace einmal::client
