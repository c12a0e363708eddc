#include "einmal/http/problem.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>

#include "einmal/http/json_text.hpp"

namespace einmal::http {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

json::object parsed(const OwnAnswer& answer) { return json::parse(answer.body).as_object(); }

std::string line(const OwnAnswer& answer, std::string_view name) {
  EXPECT_LE(answer.head.headers.count(name), 1U) << name;
  return std::string(answer.head.headers.first(name).value_or("(none)"));
}

struct Expected {
  const char* reason;
  int status;
  bool retry_after, retryable;
};

// The table of the contract, once more: this test is its second witness.
TEST(Problem, has_the_reasons_statuses_and_retry_rules_of_the_contract) {
  const std::vector<Expected> contract = {
      {"key-missing", 400, false, false},
      {"key-invalid", 400, false, false},
      {"body-unusable", 400, false, false},
      {"request-malformed", 400, false, false},
      {"upstream-failed", 502, false, false},
      {"caller-missing", 401, false, false},
      {"key-reused", 422, false, false},
      {"in-progress", 409, true, true},
      {"too-many-waiters", 409, true, true},
      {"result-not-kept", 409, false, false},
      {"ownership-lost", 409, false, false},
      {"key-expired", 410, false, false},
      {"body-too-large", 413, false, false},
      {"head-too-large", 431, false, false},
      {"quota", 429, true, true},
      {"not-idempotent-here", 501, false, false},
      {"upstream-unreachable", 502, true, true},
      {"store-unavailable", 503, true, true},
      {"overloaded", 503, true, true},
      {"draining", 503, true, true},
      {"fingerprint-unknown", 503, true, true},
      {"caller-unavailable", 503, true, true},
      {"released", 503, true, true},
      {"outcome-uncertain", 504, false, true},
      // Beside the table: the codings of a stored body, the operation resource, slow requests.
      {"not-acceptable", 406, false, false},
      {"not-found", 404, false, false},
      {"method-not-allowed", 405, false, false},
      {"request-timeout", 408, false, true},
      // The endpoint to which outcomes are reported.
      {"outcome-invalid", 400, false, false},
      {"outcome-conflict", 409, false, false},
  };
  EXPECT_EQ(reason_table().size(), contract.size());
  for (const auto& expected : contract) {
    SCOPED_TRACE(expected.reason);
    const auto reason = parse_reason(expected.reason);
    ASSERT_TRUE(reason.has_value());
    const auto answer = render(Problem(*reason, "why"), {});
    const auto body = parsed(answer);
    EXPECT_EQ(answer.head.status, expected.status);
    EXPECT_EQ(body.at("status").as_int64(), expected.status);
    EXPECT_EQ(body.at("reason").as_string(), expected.reason);
    EXPECT_EQ(body.at("type").as_string(), std::string("urn:einmal:problem:") + expected.reason);
    EXPECT_EQ(body.at("retryable").as_bool(), expected.retryable);
    EXPECT_EQ(body.at("detail").as_string(), "why");
    EXPECT_FALSE(body.at("title").as_string().empty());
    EXPECT_EQ(line(answer, "Retry-After"), expected.retry_after ? "1" : "(none)");
    EXPECT_EQ(line(answer, "Cache-Control"), "no-store");
    EXPECT_EQ(line(answer, "Content-Type"), "application/problem+json");
    EXPECT_EQ(line(answer, "Content-Length"), std::to_string(answer.body.size()));
    EXPECT_NE(line(answer, "Idempotency-Status"), "(none)");
    EXPECT_EQ(line(answer, "Idempotent-Replayed"), "(none)");
  }
}

TEST(Problem, has_one_row_for_each_reason_in_order) {
  std::set<std::string_view> ids, titles;
  std::size_t index = 0;
  for (const auto& each : reason_table()) {
    EXPECT_EQ(static_cast<std::size_t>(each.reason), index++) << each.id;
    EXPECT_EQ(&row(each.reason), &each);
    EXPECT_EQ(parse_reason(each.id), each.reason);
    EXPECT_TRUE(ids.insert(each.id).second) << each.id;
    EXPECT_TRUE(titles.insert(each.title).second) << each.id;
  }
  EXPECT_EQ(parse_reason("no-such"), std::nullopt);
}

TEST(Problem, closes_the_connection_where_the_next_request_cannot_be_found) {
  for (const auto& each : reason_table()) {
    const std::set<std::string_view> closing = {"request-malformed", "request-timeout",
                                                "body-too-large", "head-too-large", "draining"};
    EXPECT_EQ(line(render(Problem(each.reason), {}), "Connection") == "close",
              closing.count(each.id) == 1)
        << each.id;
  }
}

TEST(Problem, carries_what_is_known_of_the_operation) {
  Problem problem(Reason::outcome_uncertain, "say \"when\"\n");
  problem.status = 409;
  problem.retry_after = 1500ms;
  problem.operation = "/.well-known/einmal/operations/x";
  problem.upstream_status = 503;
  const auto answer = render(problem, {Dialect::ietf, "https://docs.example/problems/"});
  const auto body = parsed(answer);
  EXPECT_EQ(answer.head.status, 409);
  EXPECT_EQ(body.at("status").as_int64(), 409);
  EXPECT_EQ(body.at("detail").as_string(), "say \"when\"\n");
  EXPECT_EQ(body.at("operation").as_string(), "/.well-known/einmal/operations/x");
  EXPECT_EQ(body.at("upstream_status").as_int64(), 503);
  EXPECT_EQ(body.at("type").as_string(), "https://docs.example/problems/outcome-uncertain");
  EXPECT_EQ(line(answer, "Link"),
            "<https://docs.example/problems/outcome-uncertain>; rel=\"describedby\"");
  EXPECT_EQ(line(answer, "Retry-After"), "2");
  EXPECT_EQ(line(answer, "Idempotency-Status"), "uncertain");

  Problem kept(Reason::result_not_kept);
  kept.recorded_status = 201;
  kept.resource_id = "/orders/1";
  kept.expires = WallTime(1s);
  const auto kept_answer = render(kept, {});
  EXPECT_EQ(parsed(kept_answer).at("recorded_status").as_int64(), 201);
  EXPECT_EQ(parsed(kept_answer).at("resource_id").as_string(), "/orders/1");
  EXPECT_EQ(line(kept_answer, "Idempotency-Expires"), "Thu, 01 Jan 1970 00:00:01 GMT");
}

TEST(Problem, never_asks_to_come_back_at_once) {
  Problem problem(Reason::in_progress);
  problem.retry_after = Duration(0);
  EXPECT_EQ(line(render(problem, {}), "Retry-After"), "1");
}

TEST(Problem, says_nothing_of_a_key_on_unkeyed_requests) {
  Problem problem(Reason::upstream_failed);
  problem.keyed = false;
  EXPECT_EQ(line(render(problem, {}), "Idempotency-Status"), "(none)");
}

TEST(Problem, challenges_a_missing_caller_and_names_allowed_methods) {
  Problem missing(Reason::caller_missing);
  missing.challenge = "Bearer";
  EXPECT_EQ(line(render(missing, {}), "WWW-Authenticate"), "Bearer");
  Problem method(Reason::method_not_allowed);
  method.allow = "GET";
  EXPECT_EQ(line(render(method, {}), "Allow"), "GET");
}

TEST(Problem, answers_a_refused_request_with_the_parsers_status) {
  const auto status_and_reason = [](int status) {
    const auto answer = render(problem_of({status, "why"}), {});
    EXPECT_EQ(line(answer, "Connection"), "close");
    return std::pair(answer.head.status, std::string(parsed(answer).at("reason").as_string()));
  };
  EXPECT_EQ(status_and_reason(400), std::pair(400, std::string("request-malformed")));
  EXPECT_EQ(status_and_reason(501), std::pair(501, std::string("request-malformed")));
  EXPECT_EQ(status_and_reason(431), std::pair(431, std::string("head-too-large")));
}

TEST(Problem, speaks_the_stripe_dialect) {
  const ProblemStyle style{Dialect::stripe, std::nullopt};
  const auto error = [&](Reason reason) {
    const auto answer = render(Problem(reason, "details"), style);
    EXPECT_EQ(line(answer, "Content-Type"), "application/json");
    return std::pair(answer.head.status, parsed(answer).at("error").as_object());
  };
  const auto [reused_status, reused] = error(Reason::key_reused);
  EXPECT_EQ(reused_status, 400);
  EXPECT_EQ(reused.at("type").as_string(), "idempotency_error");
  EXPECT_EQ(reused.at("reason").as_string(), "key-reused");
  EXPECT_EQ(reused.at("message").as_string(),
            "The idempotency key was used with another request: details");
  const auto [in_use_status, in_use] = error(Reason::in_progress);
  EXPECT_EQ(in_use_status, 409);
  EXPECT_EQ(in_use.at("type").as_string(), "idempotency_error");
  EXPECT_EQ(in_use.at("code").as_string(), "idempotency_key_in_use");
  EXPECT_EQ(error(Reason::key_invalid).second.at("type").as_string(), "invalid_request_error");
  EXPECT_EQ(error(Reason::outcome_uncertain).first, 504);
  EXPECT_EQ(error(Reason::outcome_uncertain).second.at("type").as_string(), "api_error");
  EXPECT_TRUE(error(Reason::outcome_uncertain).second.at("retryable").as_bool());
}

TEST(JsonText, is_valid_whatever_the_bytes_are) {
  const auto read_back = [](std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return std::string(json::parse(out).as_string());
  };
  std::string ascii;
  for (char c = 0; c < 0x7f; ++c) ascii += c;
  EXPECT_EQ(read_back(ascii + "\x7f"), ascii + "\x7f");
  EXPECT_EQ(read_back("ä€𝄞"), "ä€𝄞");
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(read_back("a\xff"
                      "b"),
            "a" + bad + "b");
  EXPECT_EQ(read_back("\xc3"), bad);                      // cut short
  EXPECT_EQ(read_back("\xc0\xaf"), bad + bad);            // overlong
  EXPECT_EQ(read_back("\xed\xa0\x80"), bad + bad + bad);  // surrogate
  EXPECT_EQ(read_back("\xf4\x90\x80\x80"), bad + bad + bad + bad);
  EXPECT_EQ(read_back("\xe0\x80\x80"), bad + bad + bad);
}

}  // namespace
}  // namespace einmal::http
