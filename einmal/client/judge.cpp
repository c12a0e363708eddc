#include "einmal/client/judge.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "einmal/client/operation.hpp"
#include "einmal/client/problem_facts.hpp"
#include "einmal/http/http_date.hpp"

namespace einmal::client {

namespace {

/// Statuses that say of themselves that this attempt did nothing: the released ones of the
/// gateway's default table.
bool says_nothing_happened(int status) {
  constexpr std::array<int, 26> statuses = {307, 308, 400, 401, 403, 404, 405, 406, 407,
                                            411, 412, 413, 414, 415, 416, 417, 421, 422,
                                            423, 425, 426, 428, 429, 431, 451, 501};
  return std::binary_search(statuses.begin(), statuses.end(), status);
}

class Judge {
 public:
  Judge(const Answer& answer, const Doubt& doubt, std::string_view url)
      : answer_(answer), doubt_(doubt), url_(url), facts_(read_problem(answer)) {
    if (const auto mark = answer.headers.first("Idempotency-Status")) mark_ = *mark;
    const auto flag = answer.headers.first("Idempotent-Replayed");
    replayed_ = is("replayed") || is("resolved") || (flag && http::iequals(*flag, "true"));
    if (const auto should = answer.headers.first("Stripe-Should-Retry")) {
      if (http::iequals(*should, "true")) should_retry_ = true;
      if (http::iequals(*should, "false")) should_retry_ = false;
    }
  }

  Judged run() const {
    if (status() == 202) {
      const auto location = answer_.headers.first("Location");
      if (auto operation = location ? operation_url(url_, *location) : std::nullopt)
        return judged::Poll{std::move(*operation)};
    }
    if (auto of_the_key = about_the_key()) return std::move(*of_the_key);
    if (replayed_) return stored();
    if (is("released") || is("rejected")) return nothing_happened();
    if (status() / 100 == 2 || (status() / 100 == 3 && status() != 307 && status() != 308))
      return judged::Final{verdict::Succeeded{answer_}};
    return not_a_success();
  }

 private:
  int status() const { return answer_.status; }
  bool is(std::string_view mark) const { return http::iequals(mark_, mark); }
  bool reason_is(std::string_view reason) const { return facts_.reason == reason; }

  Judged refused(Why why) const { return judged::Final{verdict::Refused{why, answer_}}; }
  Judged unknown(Why why) const { return judged::Final{verdict::Unknown{why, answer_}}; }

  /// What the server says about the key instead of giving a result.
  std::optional<Judged> about_the_key() const {
    const bool in_use = status() == 409 && facts_.error_code == "idempotency_key_in_use";
    const bool misused =
        (status() == 400 || status() == 422) && !in_use && facts_.error_type == "idempotency_error";
    if (is("mismatch") || reason_is("key-reused") || misused) return refused(Why::mismatch);
    if (is("in-progress") || in_use) return judged::Wait{};
    if (reason_is("result-not-kept") || reason_is("not-acceptable")) return not_kept();
    if (reason_is("ownership-lost")) return unknown(Why::uncertain);
    if (is("uncertain")) return judged::Again{true, Why::uncertain};
    if (is("expired")) return unknown(Why::expired);
    return std::nullopt;
  }

  Judged not_kept() const {
    if (!facts_.recorded_status) return unknown(Why::uncertain);
    if (*facts_.recorded_status < 400) return judged::Final{verdict::Replayed{answer_}};
    return refused(Why::failed);
  }

  Judged stored() const {
    const auto effect = answer_.headers.first("Idempotency-Effect");
    if (effect && http::iequals(*effect, "unknown")) return unknown(Why::server_error);
    if (status() < 400) return judged::Final{verdict::Replayed{answer_}};
    // Only einmal tells a stored refusal with 5xx from a stored accident.
    if (status() < 500 || !mark_.empty()) return refused(Why::failed);
    return unknown(Why::server_error);
  }

  /// Speaks of this attempt only: what earlier ones did stays open.
  Judged nothing_happened() const {
    const bool later = status() == 408 || status() == 425 || status() == 429 ||
                       (status() >= 500 && status() != 501);
    if (later && should_retry_.value_or(true)) return judged::Again{false, Why::unavailable};
    if (doubt_.in_doubt) return unknown(doubt_.why);
    if (later) return judged::Final{verdict::NotAttempted{Why::unavailable, answer_}};
    if (status() == 401 || status() == 403 || status() == 407)
      return judged::Final{verdict::NotAttempted{Why::unauthorised, answer_}};
    return refused(Why::rejected);
  }

  Judged not_a_success() const {
    const bool client_error = status() / 100 == 4;
    if (should_retry_ == true)
      return judged::Again{!says_nothing_happened(status()), Why::server_error};
    if (client_error && !mark_.empty()) return refused(Why::failed);
    const bool may_be_in_progress = answer_.headers.has("Retry-After") || doubt_.in_doubt;
    if (status() == 409 && may_be_in_progress && should_retry_ != false) return judged::Wait{};
    if (says_nothing_happened(status())) return nothing_happened();
    if (client_error && status() != 408) return refused(Why::failed);
    if (should_retry_ == false) return unknown(Why::server_error);
    return judged::Again{true, Why::server_error};
  }

  const Answer& answer_;
  const Doubt& doubt_;
  std::string_view url_;
  ProblemFacts facts_;
  std::string_view mark_;
  bool replayed_ = false;
  std::optional<bool> should_retry_;
};

}  // namespace

std::optional<Duration> retry_after(const Answer& answer, WallTime now) {
  const auto value = answer.headers.first("Retry-After");
  return value ? http::parse_retry_after(*value, now) : std::nullopt;
}

Judged judge(const Answer& answer, const Doubt& doubt, std::string_view request_url) {
  return Judge(answer, doubt, request_url).run();
}

}  // namespace einmal::client
