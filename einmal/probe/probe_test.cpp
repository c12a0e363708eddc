#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>

#include "einmal/base/random.hpp"
#include "einmal/probe/json_body.hpp"
#include "einmal/probe/model_server.hpp"
#include "einmal/probe/report.hpp"
#include "einmal/probe/run.hpp"
#include "einmal/probe/scenario.hpp"

namespace einmal::probe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// Longer than any scenario but those that wait for its end, on a busy machine as well.
constexpr Milliseconds retention{2000};

Options options_for(const ModelServer& server) {
  Options options;
  options.target = {false, "127.0.0.1", server.port(), ""};
  options.request = {"POST", "/orders"};
  options.body = R"({"item":"tea","amount":3})";
  options.headers.add("X-Caller", "alice");
  options.effects = Operation{"GET", "/effects"};
  options.other_caller = std::pair("X-Caller", "bob");
  options.other_request = Operation{"POST", "/payments"};
  options.failing_body = R"({"item":"tea","amount":3,"card":"declined"})";
  options.slow_header = std::pair("X-Slow", "yes");
  options.fault_header = std::pair("X-Fault", "yes");
  options.mutate = Operation{"DELETE", "/orders/{/id}"};
  options.retention = retention;
  options.crash_command = "touch " + server.crash_file().string();
  options.start_command = "true";
  options.pace = Milliseconds(0);
  options.settle = Milliseconds(10);
  options.patience = Milliseconds(3000);
  return options;
}

Report run_on(const Options& options) {
  SystemRandom random;
  auto report = run(options, random);
  if (!report) throw std::runtime_error(report.error().message);
  return std::move(*report);
}

std::vector<std::string> names(const Report& report, Verdict verdict) {
  std::vector<std::string> found;
  for (const auto& finding : report.findings) {
    if (finding.judgement.verdict == verdict)
      found.push_back(std::string(finding.name) + ": " + finding.judgement.evidence);
  }
  return found;
}

TEST(Probe, lets_pass_what_keeps_keys_as_it_should_and_says_what_it_cannot_judge) {
  const ModelServer server({}, retention);
  const auto report = run_on(options_for(server));
  EXPECT_THAT(names(report, Verdict::failed), IsEmpty());
  EXPECT_THAT(names(report, Verdict::not_judged),
              UnorderedElementsAre(HasSubstr("stale-owner"), HasSubstr("dependency-outage")));
  EXPECT_EQ(report.findings.size(), all_scenarios().size());
}

/// Each scenario with a server that gets wrong what it asks about.
struct Wrong {
  const char* scenario;
  Fault fault;
};
class EachScenario : public ::testing::TestWithParam<Wrong> {};

TEST_P(EachScenario, fails_a_server_that_gets_it_wrong) {
  const ModelServer server({GetParam().fault}, retention);
  auto options = options_for(server);
  options.only = {GetParam().scenario};
  const auto report = run_on(options);
  ASSERT_EQ(report.findings.size(), 1);
  EXPECT_EQ(report.findings[0].judgement.verdict, Verdict::failed)
      << report.control << "\n"
      << table_line(report.findings[0]);
}

constexpr std::array wrongs{
    Wrong{"repeated", Fault::executes_every_time},
    Wrong{"same-bytes", Fault::replays_other_bytes},
    Wrong{"same-headers", Fault::replays_without_location},
    Wrong{"replay-marked", Fault::replays_unmarked},
    Wrong{"failure-replayed", Fault::evaluates_refusals_again},
    Wrong{"resource-changed", Fault::replays_the_present},
    Wrong{"key-missing", Fault::missing_is_empty_key},
    Wrong{"key-empty", Fault::takes_empty_key},
    Wrong{"key-long", Fault::cuts_long_keys},
    Wrong{"key-odd", Fault::folds_case_of_keys},
    Wrong{"key-repeated", Fault::takes_first_key_line},
    Wrong{"key-quoted", Fault::refuses_quotes},
    Wrong{"other-caller", Fault::ignores_caller},
    Wrong{"other-operation", Fault::ignores_path},
    Wrong{"body-changed", Fault::ignores_body},
    Wrong{"body-changed-in-flight", Fault::ignores_body_while_running},
    Wrong{"body-chunked", Fault::framing_is_part_of_the_key},
    Wrong{"json-reordered", Fault::body_is_part_of_the_key},
    Wrong{"json-respaced", Fault::body_is_part_of_the_key},
    Wrong{"json-numbers", Fault::body_is_part_of_the_key},
    Wrong{"json-big-integers", Fault::numbers_are_doubles},
    Wrong{"two-at-once", Fault::stores_after_the_work},
    Wrong{"many-at-once", Fault::stores_after_the_work},
    Wrong{"in-flight", Fault::tells_duplicates_success_early},
    Wrong{"pipelined", Fault::executes_every_time},
    Wrong{"answer-lost", Fault::forgets_unseen_answers},
    Wrong{"answer-cut", Fault::forgets_unseen_answers},
    Wrong{"client-hangs-up", Fault::stores_after_the_work},
    Wrong{"client-half-closes", Fault::executes_every_time},
    Wrong{"half-sent", Fault::acts_on_half_a_request},
    Wrong{"slow-sender", Fault::executes_every_time},
    Wrong{"slow-reader", Fault::executes_every_time},
    Wrong{"hidden-resends", Fault::sends_again_inside},
    Wrong{"outcome-unknown", Fault::forgets_unknown_outcomes},
    Wrong{"retention-over", Fault::forgets_too_early},
    Wrong{"retention-over", Fault::expiry_is_no_claim},
    Wrong{"crash", Fault::forgets_by_crash},
    Wrong{"crash-decided", Fault::stays_in_progress_after_a_crash},
};
INSTANTIATE_TEST_SUITE_P(Probe, EachScenario, ::testing::ValuesIn(wrongs), [](const auto& each) {
  std::string name = each.param.scenario + std::string("_") + std::to_string(each.index);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Probe, has_a_wrong_server_for_each_scenario_that_can_be_judged) {
  for (const auto& scenario : all_scenarios()) {
    if (scenario.name == "stale-owner" || scenario.name == "dependency-outage") continue;
    const bool shown = std::any_of(wrongs.begin(), wrongs.end(), [&](const Wrong& wrong) {
      return wrong.scenario == scenario.name;
    });
    EXPECT_TRUE(shown) << scenario.name;
  }
}

TEST(Probe, never_passes_what_only_a_count_of_effects_can_show) {
  const ModelServer server({}, retention);
  auto options = options_for(server);
  options.effects.reset();
  const auto report = run_on(options);
  EXPECT_THAT(names(report, Verdict::failed), IsEmpty());
  for (const auto* name : {"repeated", "two-at-once", "many-at-once", "answer-lost", "crash",
                           "hidden-resends", "retention-over", "outcome-unknown", "json-numbers"}) {
    EXPECT_THAT(names(report, Verdict::not_judged), ::testing::Contains(HasSubstr(name)));
  }
}

TEST(Probe, fails_two_results_for_one_key_even_without_a_count_of_effects) {
  const ModelServer server({Fault::executes_every_time}, retention);
  auto options = options_for(server);
  options.effects.reset();
  options.only = {"repeated"};
  EXPECT_EQ(run_on(options).count(Verdict::failed), 1);
}

TEST(Probe, does_not_trust_a_counter_that_does_not_count) {
  const ModelServer server({Fault::doubles_effects}, retention);
  auto options = options_for(server);
  options.only = {"repeated"};
  const auto report = run_on(options);
  EXPECT_EQ(report.count(Verdict::not_judged), 1);
  EXPECT_THAT(report.control, HasSubstr("not two"));
}

TEST(Probe, stops_sending_at_its_bound) {
  const ModelServer server({}, retention);
  auto options = options_for(server);
  options.max_requests = 12;
  const auto report = run_on(options);
  EXPECT_LE(report.requests, 12 + 3);  // A scenario that has begun ends.
  EXPECT_GT(report.count(Verdict::not_judged), 25);
}

TEST(Probe, refuses_another_machine_unless_told_that_it_may) {
  SystemRandom random;
  Options options;
  options.target = {false, "192.0.2.1", 80, ""};
  options.request = {"POST", "/"};
  options.timeout = Milliseconds(50);
  const auto refused = run(options, random);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid);
  EXPECT_THAT(refused.error().message, HasSubstr("--yes-this-host"));
}

TEST(Probe, says_that_nothing_can_be_judged_when_the_request_itself_is_refused) {
  const ModelServer server({}, retention);
  SystemRandom random;
  auto options = options_for(server);
  options.request = {"DELETE", "/nothing"};
  const auto report = run(options, random);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::unavailable);
  EXPECT_THAT(report.error().message, HasSubstr("404"));
}

TEST(Probe, knows_its_scenarios_by_name) {
  SystemRandom random;
  Options options;
  options.target = {false, "127.0.0.1", 1, ""};
  options.request = {"POST", "/"};
  options.only = {"repeatd"};
  EXPECT_THAT(run(options, random).error().message, HasSubstr("repeatd"));
  EXPECT_THAT(list_of_scenarios(), AllOf(HasSubstr("two-at-once"), HasSubstr("RFC 9110")));
}

Report sample() {
  Report report{"POST http://127.0.0.1:1/", "a \"control\"", {}, 7};
  report.findings.push_back({"one", "w", "law", passed("fine"), Milliseconds(1234)});
  report.findings.push_back({"two", "w", "law", failed("2 < 3 & \"so\""), Milliseconds(5)});
  report.findings.push_back({"three", "w", "law", not_judged("no counter"), Milliseconds(0)});
  return report;
}

TEST(ProbeReport, is_json) {
  const auto json = boost::json::parse(as_json(sample())).as_object();
  EXPECT_EQ(json.at("passed").as_int64(), 1);
  EXPECT_EQ(json.at("failed").as_int64(), 1);
  EXPECT_EQ(json.at("not_judged").as_int64(), 1);
  EXPECT_EQ(json.at("requests").as_int64(), 7);
  const auto& second = json.at("scenarios").as_array().at(1).as_object();
  EXPECT_EQ(second.at("verdict").as_string(), "failed");
  EXPECT_EQ(second.at("evidence").as_string(), "2 < 3 & \"so\"");
  EXPECT_EQ(json.at("scenarios").at(2).at("verdict").as_string(), "not_judged");
}

TEST(ProbeReport, is_junit) {
  const auto xml = as_junit(sample());
  EXPECT_THAT(xml, HasSubstr("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""));
  EXPECT_THAT(xml, HasSubstr("time=\"1.234\""));
  EXPECT_THAT(xml, HasSubstr("<failure message=\"2 &lt; 3 &amp; &quot;so&quot;\"/>"));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"no counter\"/>"));
}

TEST(ProbeReport, is_a_table) {
  EXPECT_THAT(table_line(sample().findings[1]), AllOf(HasSubstr("two"), HasSubstr("FAILED")));
  EXPECT_THAT(summary(sample()), HasSubstr("1 passed, 1 failed, 1 not judged; 7 requests"));
}

TEST(ProbeOptions, reads_targets) {
  const auto target = parse_target("http://localhost:8080/v1/");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->host, "localhost");
  EXPECT_EQ(target->port, 8080);
  EXPECT_EQ(target->base, "/v1");
  EXPECT_EQ(target->authority(), "localhost:8080");
  const auto six = parse_target("http://[::1]:81");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(six->authority(), "[::1]:81");
  const auto secure = parse_target("https://shop.example");
  ASSERT_TRUE(secure);
  EXPECT_EQ(secure->port, 443);
  EXPECT_EQ(secure->origin(), "https://shop.example");
  for (const auto* bad : {"", "localhost", "ftp://a", "http://", "http://a:0", "http://a:b",
                          "http://u@a", "http://a/?q", "wss://a", "http://a:70000"}) {
    EXPECT_FALSE(parse_target(bad)) << bad;
  }
}

TEST(ProbeOptions, reads_operations_and_headers) {
  EXPECT_EQ(parse_operation("POST /orders")->path, "/orders");
  for (const auto* bad : {"", "POST", "/orders", "POST orders", "PO ST /x y", "POST /a\r\nX: y"}) {
    EXPECT_FALSE(parse_operation(bad)) << bad;
  }
  EXPECT_EQ(parse_header("X-Caller:  bob ")->second, "bob");
  for (const auto* bad : {"", "X", ": x", "X y: z", "X: a\nb"}) EXPECT_FALSE(parse_header(bad));
}

TEST(JsonBody, is_told_in_other_words_without_touching_its_values) {
  const auto body = JsonBody::read(R"({ "a": 1.50, "b":"x,\"}:{" , "c":[1,{"d":2}] })");
  ASSERT_TRUE(body);
  EXPECT_EQ(body->text(), R"({"a":1.50,"b":"x,\"}:{","c":[1,{"d":2}]})");
  EXPECT_EQ(body->reordered(), R"({"c":[1,{"d":2}],"b":"x,\"}:{","a":1.50})");
  EXPECT_EQ(boost::json::parse(body->respaced()), boost::json::parse(body->text()));
  EXPECT_NE(body->respaced(), body->text());
  EXPECT_EQ(JsonBody::read("{}")->with("n", "1e1"), R"({"n":1e1})");
  EXPECT_FALSE(JsonBody::read("[1]"));
  EXPECT_FALSE(JsonBody::read("{\"a\":}"));
}

TEST(JsonBody, is_changed_into_another_request) {
  EXPECT_EQ(JsonBody::read(R"({"s":"a","n":41})")->changed(), R"({"s":"a","n":42})");
  EXPECT_EQ(JsonBody::read(R"({"s":"a","n":1.5})")->changed(), R"({"s":"ax","n":1.5})");
  EXPECT_EQ(JsonBody::read(R"({"n":1.5,"l":[]})")->changed(), std::nullopt);
}

TEST(JsonBody, fills_in_paths) {
  EXPECT_EQ(fill_in("/orders/{/id}", R"({"id":"7"})"), "/orders/7");
  EXPECT_EQ(fill_in("/a/{/x/0}/b/{/n}", R"({"x":["p"],"n":12})"), "/a/p/b/12");
  EXPECT_EQ(fill_in("/plain", "not json"), "/plain");
  EXPECT_EQ(fill_in("/orders/{/id}", R"({"no":1})"), std::nullopt);
  EXPECT_EQ(fill_in("/orders/{/id}", "not json"), std::nullopt);
}

}  // namespace
}  // namespace einmal::probe
