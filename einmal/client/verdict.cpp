#include "einmal/client/verdict.hpp"

#include <array>
#include <utility>

namespace einmal::client {

namespace {

constexpr std::array<std::string_view, 5> verdict_names = {"succeeded", "replayed", "refused",
                                                           "not_attempted", "unknown"};
// In the order of the enumeration.
constexpr std::array<std::string_view, 14> why_names = {"",
                                                        "failed",
                                                        "mismatch",
                                                        "rejected",
                                                        "unreachable",
                                                        "unavailable",
                                                        "unauthorised",
                                                        "journal",
                                                        "no_answer",
                                                        "in_progress",
                                                        "uncertain",
                                                        "server_error",
                                                        "expired",
                                                        "too_old"};

struct WhyOf {
  Why operator()(const verdict::Succeeded&) const { return Why::none; }
  Why operator()(const verdict::Replayed&) const { return Why::none; }
  template <class Other>
  Why operator()(const Other& other) const {
    return other.why;
  }
};

const Answer* pointer(const std::optional<Answer>& answer) { return answer ? &*answer : nullptr; }

struct AnswerOf {
  const Answer* operator()(const verdict::NotAttempted& v) const { return pointer(v.last); }
  const Answer* operator()(const verdict::Unknown& v) const { return pointer(v.last); }
  template <class Other>
  const Answer* operator()(const Other& other) const {
    return &other.answer;
  }
};

}  // namespace

std::string_view name(const Verdict& verdict) { return verdict_names[verdict.index()]; }

std::string_view name(Why why) { return why_names[static_cast<std::size_t>(why)]; }

std::optional<Why> parse_why(std::string_view text) {
  for (std::size_t i = 0; i < why_names.size(); ++i) {
    if (why_names[i] == text) return static_cast<Why>(i);
  }
  return std::nullopt;
}

Why why(const Verdict& verdict) { return std::visit(WhyOf{}, verdict); }

const Answer* answer_of(const Verdict& verdict) { return std::visit(AnswerOf{}, verdict); }

bool is_settled(const Verdict& verdict) { return verdict.index() <= 2; }

std::optional<Verdict> make_verdict(std::string_view name, Why why, std::optional<Answer> answer) {
  if (name == verdict_names[3]) return verdict::NotAttempted{why, std::move(answer)};
  if (name == verdict_names[4]) return verdict::Unknown{why, std::move(answer)};
  if (!answer) return std::nullopt;
  if (name == verdict_names[0]) return verdict::Succeeded{std::move(*answer)};
  if (name == verdict_names[1]) return verdict::Replayed{std::move(*answer)};
  if (name == verdict_names[2]) return verdict::Refused{why, std::move(*answer)};
  return std::nullopt;
}

}  // namespace einmal::client
