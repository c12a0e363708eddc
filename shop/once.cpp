#include "shop/once.hpp"

#include <utility>

#include "einmal/http/key_field.hpp"
#include "einmal/http/problem.hpp"
#include "einmal/http/replay_headers.hpp"
#include "einmal/http/status_class.hpp"

namespace einmal::shop {

namespace {

using http::IdempotencyStatus;
using http::Problem;
using http::Reason;

/// What the digest of a request means here. An order without a currency is one in euros.
FingerprintProfile profile() {
  FingerprintOptions options;
  options.defaults = {{"/currency", "\"eur\""}};
  return *FingerprintProfile::make(std::move(options));
}

Reply refusal(Problem problem) {
  auto answer = http::render(problem, {});
  answer.head.headers.remove("Content-Length");
  // A gateway before the shop is to know that this copy of the request did nothing.
  if (row(problem.reason).retryable && problem.reason != Reason::outcome_uncertain)
    answer.head.headers.add("Einmal-Outcome", "released");
  return {answer.head.status, std::move(answer.head.headers), std::move(answer.body)};
}

Reply marked(Reply reply, const http::Marks& marks) {
  http::add_marks(reply.headers, marks);
  reply.headers.set("Cache-Control", "no-store");
  return reply;
}

StoredResult kept(const Reply& reply) {
  StoredResult result;
  result.status = reply.status;
  result.headers = http::serialize(http::stored_lines(reply.headers, {}));
  result.body = reply.body;
  return result;
}

/// What becomes of the key, by what the work answered. Nothing here is uncertain: what is not kept
/// is undone.
HandlerOutcome outcome_of(const Reply& reply) {
  switch (http::classify(reply.status, reply.headers, {}).outcome) {
    case http::Outcome::completed:
      return handled::Completed{kept(reply)};
    case http::Outcome::failed:
      return handled::Failed{kept(reply)};
    case http::Outcome::released:
    case http::Outcome::uncertain:
      break;
  }
  return handled::Released{};
}

Reply replay(const ran::Replayed& replayed) {
  const StoredResult& result = replayed.result;
  if (result.body_kept != BodyKept::kept) {
    Problem problem(Reason::result_not_kept);
    problem.recorded_status = result.status;
    problem.resource_id = result.resource_id;
    return refusal(std::move(problem));
  }
  Reply reply{result.status, {}, result.body};
  if (auto lines = http::parse_stored_headers(result.headers)) reply.headers = std::move(*lines);
  http::Marks marks;
  marks.status = replayed.resolved ? IdempotencyStatus::resolved : IdempotencyStatus::replayed;
  marks.effect = result.effect;
  return marked(std::move(reply), marks);
}

/// `fresh` is what the work answered, if it ran in this request.
struct AsReply {
  std::optional<Reply> fresh;

  std::optional<Reply> operator()(const ran::Executed&) {
    return marked(std::move(*fresh), {.status = IdempotencyStatus::executed});
  }
  std::optional<Reply> operator()(const ran::Released&) {
    if (!fresh) return std::nullopt;
    return marked(std::move(*fresh), {.status = IdempotencyStatus::released});
  }
  std::optional<Reply> operator()(const ran::Replayed& replayed) { return replay(replayed); }
  std::optional<Reply> operator()(const ran::Mismatch&) {
    return refusal(Problem(Reason::key_reused));
  }
  std::optional<Reply> operator()(const ran::OtherProfile&) {
    return refusal(Problem(Reason::fingerprint_unknown));
  }
  std::optional<Reply> operator()(const ran::InProgress& there) {
    Problem problem(Reason::in_progress);
    problem.retry_after = there.retry_after;
    return refusal(std::move(problem));
  }
  std::optional<Reply> operator()(const ran::Uncertain&) {
    return refusal(Problem(Reason::outcome_uncertain));
  }
  std::optional<Reply> operator()(const ran::Gone&) {
    return refusal(Problem(Reason::key_expired));
  }
};

Reply failed(const Error& error) {
  return refusal(Problem(error.code == ErrorCode::in_doubt ? Reason::outcome_uncertain
                                                           : Reason::store_unavailable));
}

/// Whose key it is. The shop has no accounts: it believes what the request says, and whoever says
/// nothing is a visitor. A service takes the account that the request was authenticated as, never a
/// credential, which changes.
std::optional<std::string> caller_of(const Request& request) {
  if (request.headers.count("X-Caller") > 1) return std::nullopt;
  std::string caller(request.headers.first("X-Caller").value_or("visitor"));
  if (!is_valid_key(caller)) return std::nullopt;
  return caller;
}

Reply unknown_caller() {
  Problem problem(Reason::caller_missing,
                  "X-Caller is given once, in visible ASCII, or not at all");
  problem.status = 403;
  return refusal(std::move(problem));
}

}  // namespace

Once::Once(Ledger& ledger, KeyRules rules) : ledger_(ledger), rules_(rules), profile_(profile()) {}

bool Once::concerns(const Request& request) const {
  if (request.method == "POST" && rules_.required) return true;
  return !std::holds_alternative<http::key::Absent>(http::find_key(request.headers, {}));
}

std::optional<Reply> Once::handle(const Request& request, const std::string& operation,
                                  const Work& work) {
  const auto caller = caller_of(request);
  if (!caller) return unknown_caller();
  const auto found = http::find_key(request.headers, {});
  if (const auto* invalid = std::get_if<http::key::Invalid>(&found))
    return refusal(Problem(Reason::key_invalid, std::string(invalid->why)));
  const auto* key = std::get_if<http::key::Present>(&found);
  if (!key) return refusal(Problem(Reason::key_missing));

  // Whatever name it was reached by, it is the same shop.
  const auto digest = fingerprint(
      profile_, {request.method, operation, "shop", request.target, request.headers, request.body});
  if (const auto* unusable = std::get_if<Unusable>(&digest))
    return refusal(Problem(Reason::body_unusable, unusable->reason));
  auto scope = Scope::make("shop", *caller, operation, key->value);
  if (!scope) return failed(scope.error());
  TransactionRequest wanted{std::move(*scope), {profile_.id(), std::get<Digest>(digest)}, {}};
  wanted.policies.retention = rules_.retention;

  std::optional<Reply> fresh;
  const auto ran = ledger_.change_once(wanted, [&](Books& books) -> HandlerOutcome {
    fresh = work(books);
    return fresh ? outcome_of(*fresh) : HandlerOutcome(handled::Released{});
  });
  return ran ? std::visit(AsReply{std::move(fresh)}, *ran) : failed(ran.error());
}

}  // namespace einmal::shop
