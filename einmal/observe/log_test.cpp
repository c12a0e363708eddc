#include "einmal/observe/log.hpp"

#include <unistd.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>

#include "einmal/engine/engine_fixture.hpp"
#include "einmal/store/log_digest.hpp"

namespace einmal {
namespace {

class LogTest : public EngineTest {
 protected:
  Log& open(LogOptions options = {}) {
    options.format = LogOptions::Format::json;
    options.sink = [this](std::string_view line) { lines.emplace_back(line); };
    log = std::move(*Log::open(store, clock, options));
    told_instead = log.get();
    return *log;
  }
  static std::string text(const boost::json::object& line, const char* name) {
    return std::string(line.at(name).as_string());
  }
  boost::json::object line(std::size_t i) { return boost::json::parse(lines.at(i)).as_object(); }
  /// The line of that event; fails the test if there is not exactly one.
  boost::json::object the(const std::string& event) {
    boost::json::object found;
    int count = 0;
    for (const std::string& line : lines) {
      const auto object = boost::json::parse(line).as_object();
      if (text(object, "event") != event) continue;
      found = object;
      ++count;
    }
    EXPECT_EQ(count, 1) << event;
    return found;
  }

  std::vector<std::string> lines;
  std::unique_ptr<Log> log;
};

TEST_F(LogTest, TheOrdinaryRoadIsSilent) {
  open();
  ask("K").settle();
  scheduler.run_ready();
  ask("K");
  ask("K2").release();
  scheduler.run_ready();
  EXPECT_TRUE(lines.empty());
}

TEST_F(LogTest, AnUncertainOutcomeNamesItsKeyAndCallerAsDigests) {
  open();
  Asked& owner = ask("K");
  owner.mark_uncertain();
  scheduler.run_ready();
  const auto uncertain = the("uncertain");
  const LogDigest digest(store);
  EXPECT_EQ(text(uncertain, "key"), digest.of(scope("K")));
  EXPECT_EQ(text(uncertain, "caller"), digest.of_caller("gateway", "alice"));
  EXPECT_EQ(text(uncertain, "operation"), "create-order");
  EXPECT_EQ(text(uncertain, "cause"), "outcome_unknown");
  EXPECT_EQ(text(uncertain, "level"), "warning");
  EXPECT_EQ(uncertain.at("generation").as_int64(), 1);
  EXPECT_EQ(text(uncertain, "operation_id"), owner.execution().record().operation_id.text());
  EXPECT_EQ(text(uncertain, "time"), "2024-01-01T00:00:00.000000Z");
}

TEST_F(LogTest, ATakeoverTellsBothSides) {
  open();
  Asking asking;
  asking.on_lease_expiry = OnLeaseExpiry::takeover;
  asking.lease = 3s;
  Asked& stale = ask("K", asking);
  clock.advance(3s);
  Asked& successor = ask(start(), "K", asking);
  successor.settle(402, "declined", true);
  scheduler.run_ready();
  stale.settle();
  scheduler.run_ready();
  EXPECT_EQ(the("taken_over").at("attempts").as_int64(), 2);
  EXPECT_EQ(the("ownership_lost").at("generation").as_int64(), 1);
  EXPECT_TRUE(the("late_result").at("contradicts").as_bool());
  EXPECT_EQ(text(the("alarm"), "alarm"), "late_contradiction");
}

TEST_F(LogTest, AFailingStoreIsToldOnceASecondWithTheNumberLeftOut) {
  open();
  faults().inject(Fault::refused, is_event<event::Claim>, FaultStore::forever);
  for (int i = 0; i < 100; ++i) ask("K" + std::to_string(i));
  EXPECT_EQ(lines.size(), 1u);
  scheduler.advance(1s);
  ask("K");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(line(1).at("left_out").as_int64(), 99);
  EXPECT_EQ(text(line(1), "code"), "unavailable");
}

TEST_F(LogTest, BelowItsLevelNothingIsWritten) {
  LogOptions options;
  options.level = LogLevel::error;
  open(options);
  ask("K").mark_uncertain();
  scheduler.run_ready();
  EXPECT_TRUE(lines.empty());
  log->note(LogLevel::error, "refused", "config line 7");
  EXPECT_EQ(text(the("refused"), "detail"), "config line 7");
}

TEST_F(LogTest, RequestsAreWrittenOnRequestWithTheirTrace) {
  LogOptions options;
  options.requests = true;
  open(options);
  log->request_ended({"create-order", "POST", 201, "executed", "", 12, 34, 1500us,
                      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"});
  const auto request = the("request");
  EXPECT_EQ(text(request, "trace_id"), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(text(request, "span_id"), "00f067aa0ba902b7");
  EXPECT_EQ(request.at("status").as_int64(), 201);
  EXPECT_DOUBLE_EQ(request.at("took").as_double(), 0.0015);
  lines.clear();
  log->request_ended({"", "GET", 200, "", "", 0, 0, 1ms, "\"} not a trace at all"});
  EXPECT_FALSE(the("request").contains("trace_id"));
}

TEST_F(LogTest, RequestsAreNotWrittenUnlessAskedFor) {
  open().request_ended({"create-order", "POST", 201, "executed", "", 12, 34, 1500us, ""});
  EXPECT_TRUE(lines.empty());
}

TEST_F(LogTest, WhateverAnOperationIsCalledALineIsOneJsonObject) {
  open().note(LogLevel::error, "note", "quote \" backslash \\ newline \n \x01 \xff \xc3\xa4");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find('\n'), std::string::npos);
  EXPECT_EQ(text(line(0), "event"), "note");
}

TEST_F(LogTest, NoKeyCallerOrBodyIsInAnyLineAtAnyLevel) {
  LogOptions options;
  options.level = LogLevel::debug;
  options.requests = true;
  open(options);
  Asking asking;
  asking.caller = "secret-caller";
  asking.body = "secret-body";
  asking.on_lease_expiry = OnLeaseExpiry::takeover;
  asking.lease = 3s;
  Asked& stale = ask("secret-key", asking);
  clock.advance(3s);
  Asked& successor = ask(start(), "secret-key", asking);
  successor.settle(201, "secret-answer");
  scheduler.run_ready();
  stale.settle(201, "secret-answer");
  scheduler.run_ready();
  ask("secret-key-2", asking).mark_uncertain();
  scheduler.run_ready();
  Asked& unrecorded = ask("secret-key-3", asking);
  faults().inject(Fault::refused, testing::is_any, FaultStore::forever);
  unrecorded.settle(201, "secret-answer");
  scheduler.advance(10s);
  engine().stop({});
  scheduler.run_ready();
  EXPECT_GE(lines.size(), 6u);
  for (const std::string& text : lines) EXPECT_EQ(text.find("secret"), std::string::npos) << text;
}

TEST_F(LogTest, TextLinesArePairs) {
  LogOptions options;
  std::vector<std::string> text;
  options.sink = [&](std::string_view line) { text.emplace_back(line); };
  const auto plain = std::move(*Log::open(store, clock, options));
  plain->note(LogLevel::warning, "note", "two words");
  ASSERT_EQ(text.size(), 1u);
  EXPECT_EQ(text[0], "2024-01-01T00:00:00.000000Z warning note detail=\"two words\"");
}

TEST_F(LogTest, AFileIsAppendedToAndComplete) {
  char directory[] = "/tmp/einmal-log-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  LogOptions options;
  options.file = std::string(directory) + "/einmal.log";
  for (int round = 0; round < 2; ++round) {
    const auto to_file = std::move(*Log::open(store, clock, options));
    for (int i = 0; i < 100; ++i) to_file->note(LogLevel::info, "note", std::to_string(i));
  }
  std::ifstream in(options.file);
  int count = 0;
  for (std::string line; std::getline(in, line);) ++count;
  EXPECT_EQ(count, 200);
  std::remove(options.file.c_str());
  rmdir(directory);
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsAnErrorThatNamesIt) {
  LogOptions options;
  options.file = "/dev/null/einmal.log";
  const auto opened = Log::open(store, clock, options);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::invalid);
  EXPECT_NE(opened.error().message.find(options.file), std::string::npos);
}

}  // namespace
}  // namespace einmal
