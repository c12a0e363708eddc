#include "einmal/http/problem.hpp"

#include <algorithm>
#include <utility>

#include "einmal/http/http_date.hpp"
#include "einmal/http/json_text.hpp"

namespace einmal::http {

namespace {

using Mark = IdempotencyStatus;

constexpr bool retryable = true, final_ = false;
constexpr bool retry_after = true, no_delay = false;
constexpr bool closes = true, stays = false;

constexpr ReasonRow table[] = {
    {Reason::key_missing, "key-missing", 400, "An idempotency key is required", final_, no_delay,
     stays, Mark::rejected},
    {Reason::key_invalid, "key-invalid", 400, "The idempotency key is not usable", final_, no_delay,
     stays, Mark::rejected},
    {Reason::body_unusable, "body-unusable", 400, "The request body has no single meaning", final_,
     no_delay, stays, Mark::rejected},
    {Reason::request_malformed, "request-malformed", 400, "The request is malformed", final_,
     no_delay, closes, Mark::rejected},
    {Reason::request_timeout, "request-timeout", 408, "The request came too slowly", retryable,
     no_delay, closes, Mark::rejected},
    {Reason::outcome_invalid, "outcome-invalid", 400, "The reported outcome is not usable", final_,
     no_delay, stays, Mark::rejected},
    {Reason::caller_missing, "caller-missing", 401, "The caller is not known", final_, no_delay,
     stays, Mark::rejected},
    {Reason::not_found, "not-found", 404, "There is no such operation", final_, no_delay, stays,
     Mark::rejected},
    {Reason::method_not_allowed, "method-not-allowed", 405,
     "This resource does not have that method", final_, no_delay, stays, Mark::rejected},
    {Reason::not_acceptable, "not-acceptable", 406,
     "The stored answer has a content coding that this request does not accept", final_, no_delay,
     stays, Mark::replayed},
    {Reason::in_progress, "in-progress", 409, "A request with this key is being executed",
     retryable, retry_after, stays, Mark::in_progress},
    {Reason::too_many_waiters, "too-many-waiters", 409, "Too many requests wait for this key",
     retryable, retry_after, stays, Mark::in_progress},
    {Reason::result_not_kept, "result-not-kept", 409,
     "The operation is completed, but its answer was not kept", final_, no_delay, stays,
     Mark::replayed},
    {Reason::ownership_lost, "ownership-lost", 409,
     "Another request took the key over, and its record is gone", final_, no_delay, stays,
     Mark::uncertain},
    {Reason::outcome_conflict, "outcome-conflict", 409,
     "The operation is not as the reported outcome supposes", final_, no_delay, stays,
     Mark::rejected},
    {Reason::key_expired, "key-expired", 410, "The idempotency key has expired", final_, no_delay,
     stays, Mark::expired},
    {Reason::body_too_large, "body-too-large", 413, "The request body is too large", final_,
     no_delay, closes, Mark::rejected},
    {Reason::key_reused, "key-reused", 422, "The idempotency key was used with another request",
     final_, no_delay, stays, Mark::mismatch},
    {Reason::quota, "quota", 429, "The caller has too many records", retryable, retry_after, stays,
     Mark::rejected},
    {Reason::head_too_large, "head-too-large", 431, "The request head is too large", final_,
     no_delay, closes, Mark::rejected},
    {Reason::not_idempotent_here, "not-idempotent-here", 501,
     "This route does not take idempotency keys", final_, no_delay, stays, Mark::rejected},
    {Reason::upstream_failed, "upstream-failed", 502, "The upstream failed", final_, no_delay,
     stays, Mark::rejected},
    {Reason::upstream_unreachable, "upstream-unreachable", 502,
     "The upstream could not be reached; nothing was sent", retryable, retry_after, stays,
     Mark::released},
    {Reason::store_unavailable, "store-unavailable", 503,
     "The record of operations is unavailable; nothing was sent", retryable, retry_after, stays,
     Mark::rejected},
    {Reason::overloaded, "overloaded", 503, "Too many requests at once; nothing was sent",
     retryable, retry_after, stays, Mark::rejected},
    {Reason::draining, "draining", 503, "The gateway is stopping; nothing was sent", retryable,
     retry_after, closes, Mark::rejected},
    {Reason::fingerprint_unknown, "fingerprint-unknown", 503,
     "The key was used under a fingerprint profile that this gateway does not know", retryable,
     retry_after, stays, Mark::rejected},
    {Reason::caller_unavailable, "caller-unavailable", 503,
     "The caller could not be checked; nothing was sent", retryable, retry_after, stays,
     Mark::rejected},
    {Reason::released, "released", 503, "The attempt that this request waited for had no effect",
     retryable, retry_after, stays, Mark::released},
    {Reason::outcome_uncertain, "outcome-uncertain", 504,
     "The outcome of the operation is not known", retryable, no_delay, stays, Mark::uncertain},
};

void append_member(std::string& out, std::string_view name, std::string_view text) {
  if (out.back() != '{') out += ',';
  append_json_string(out, name);
  out += ':';
  append_json_string(out, text);
}
void append_plain_member(std::string& out, std::string_view name, std::string_view json) {
  if (out.back() != '{') out += ',';
  append_json_string(out, name);
  out.append(":").append(json);
}

std::string type_of(const ReasonRow& reason, const ProblemStyle& style) {
  return style.documentation.value_or("urn:einmal:problem:").append(reason.id);
}

// What both dialects say in members of the same names.
void append_facts(std::string& out, const Problem& problem, const ReasonRow& reason) {
  append_member(out, "reason", reason.id);
  append_plain_member(out, "retryable", reason.retryable ? "true" : "false");
  if (problem.operation) append_member(out, "operation", *problem.operation);
  if (problem.upstream_status) {
    append_plain_member(out, "upstream_status", std::to_string(*problem.upstream_status));
  }
  if (problem.recorded_status) {
    append_plain_member(out, "recorded_status", std::to_string(*problem.recorded_status));
  }
  if (problem.resource_id) append_member(out, "resource_id", *problem.resource_id);
}

std::string ietf_body(const Problem& problem, const ReasonRow& reason, int status,
                      const ProblemStyle& style) {
  std::string out = "{";
  append_member(out, "type", type_of(reason, style));
  append_member(out, "title", reason.title);
  append_plain_member(out, "status", std::to_string(status));
  if (!problem.detail.empty()) append_member(out, "detail", problem.detail);
  append_facts(out, problem, reason);
  return out += "}\n";
}

std::string_view stripe_type(const ReasonRow& reason, int status) {
  if (reason.mark == Mark::mismatch || reason.mark == Mark::in_progress) {
    return "idempotency_error";
  }
  return status >= 500 ? "api_error" : "invalid_request_error";
}

std::string stripe_body(const Problem& problem, const ReasonRow& reason, int status,
                        const ProblemStyle& style) {
  std::string out = "{\"error\":{";
  append_member(out, "type", stripe_type(reason, status));
  if (reason.reason == Reason::in_progress) append_member(out, "code", "idempotency_key_in_use");
  std::string message(reason.title);
  message += problem.detail.empty() ? "." : ": " + problem.detail;
  append_member(out, "message", message);
  if (style.documentation) append_member(out, "doc_url", type_of(reason, style));
  append_facts(out, problem, reason);
  return out += "}}\n";
}

int status_of(const Problem& problem, const ReasonRow& reason, Dialect dialect) {
  if (problem.status != 0) return problem.status;
  if (dialect == Dialect::stripe && reason.reason == Reason::key_reused) return 400;
  return reason.status;
}

void add_lines(HeaderLines& lines, const Problem& problem, const ReasonRow& reason) {
  lines.add("Cache-Control", "no-store");
  if (problem.retry_after || reason.retry_after) {
    const auto wait = std::chrono::ceil<std::chrono::seconds>(
        problem.retry_after.value_or(std::chrono::seconds(1)));
    lines.add("Retry-After", std::to_string(std::max<std::int64_t>(1, wait.count())));
  }
  if (problem.challenge) lines.add("WWW-Authenticate", *problem.challenge);
  if (problem.allow) lines.add("Allow", *problem.allow);
  if (problem.keyed) lines.add("Idempotency-Status", name(reason.mark));
  if (problem.keyed && problem.expires) {
    lines.add("Idempotency-Expires", imf_fixdate(*problem.expires));
  }
  if (reason.closes) lines.add("Connection", "close");
}

}  // namespace

std::span<const ReasonRow> reason_table() { return table; }

const ReasonRow& row(Reason reason) { return table[static_cast<std::size_t>(reason)]; }

std::optional<Reason> parse_reason(std::string_view id) {
  for (const auto& each : table) {
    if (each.id == id) return each.reason;
  }
  return std::nullopt;
}

Problem problem_of(const RequestError& error) {
  Problem problem(error.status == 431 ? Reason::head_too_large : Reason::request_malformed,
                  std::string(error.what));
  problem.status = error.status;
  problem.keyed = false;
  return problem;
}

OwnAnswer render(const Problem& problem, const ProblemStyle& style) {
  const auto& reason = row(problem.reason);
  OwnAnswer answer;
  answer.head.status = status_of(problem, reason, style.dialect);
  const bool ietf = style.dialect == Dialect::ietf;
  answer.body = ietf ? ietf_body(problem, reason, answer.head.status, style)
                     : stripe_body(problem, reason, answer.head.status, style);
  auto& lines = answer.head.headers;
  lines.reserve(10, 400);
  lines.add("Content-Type", ietf ? "application/problem+json" : "application/json");
  lines.add("Content-Length", std::to_string(answer.body.size()));
  add_lines(lines, problem, reason);
  if (style.documentation) {
    lines.add("Link", "<" + type_of(reason, style) + ">; rel=\"describedby\"");
  }
  return answer;
}

}  // namespace einmal::http
