#include <array>
#include <map>

#include "einmal/probe/json_body.hpp"
#include "einmal/probe/scenario.hpp"

namespace einmal::probe {

namespace {

/// A first answer and the answer to its repeat.
struct Pair {
  Answer first, second;
};

Pair send_twice(Bench& bench) {
  const auto request = bench.keyed(bench.fresh_key());
  Pair pair;
  pair.first = bench.send(request);
  pair.second = bench.send(request);
  return pair;
}

/// Lines that may differ between an answer and its replay: made per message or per connection.
bool is_volatile(std::string_view name) {
  constexpr std::array<std::string_view, 22> names{
      "Date",        "Age",           "Set-Cookie",        "Connection",
      "Keep-Alive",  "Trailer",       "Transfer-Encoding", "Content-Length",
      "Alt-Svc",     "Server-Timing", "Cache-Control",     "Via",
      "Vary",        "Expires",       "X-Request-Id",      "X-Correlation-Id",
      "Traceparent", "Tracestate",    "X-Response-Time",   "Retry-After",
      "ETag",        "X-Cache"};
  for (const auto each : names) {
    if (http::iequals(name, each)) return true;
  }
  return http::istarts_with(name, "Idempot") || http::istarts_with(name, "X-Idempot") ||
         http::istarts_with(name, "RateLimit") || http::istarts_with(name, "X-RateLimit");
}

}  // namespace

Judgement repeated(Bench& bench) {
  Watch watch(bench);
  const auto request = bench.keyed(bench.fresh_key());
  std::vector<Answer> answers;
  for (int i = 0; i < 3; ++i) answers.push_back(bench.send(request));
  return one_effect(bench, watch, answers, "sent three times");
}

Judgement same_bytes(Bench& bench) {
  const auto [first, second] = send_twice(bench);
  const auto says = "first " + in_words(first) + " with " + std::to_string(first.body.size()) +
                    " bytes, repeat " + in_words(second) + " with " +
                    std::to_string(second.body.size());
  if (!first.is_success()) return not_judged(says);
  if (first.status != second.status) return failed(says + "; another status");
  if (first.body != second.body) return failed(says + "; another body");
  if (!bench.control.answers_tell_apart)
    return not_judged(says + "; but this API answers every request alike");
  return passed(says + ", the same");
}

Judgement same_headers(Bench& bench) {
  const auto [first, second] = send_twice(bench);
  if (!first.is_success() || first.status != second.status)
    return first.is_success()
               ? failed("the repeat is answered " + in_words(second) + ", not " + in_words(first))
               : not_judged("the first is answered " + in_words(first));
  std::size_t compared = 0;
  for (const auto& line : first.headers) {
    if (is_volatile(line.name)) continue;
    ++compared;
    if (first.headers.all(line.name) != second.headers.all(line.name))
      return failed("the repeat has another " + std::string(line.name));
  }
  for (const auto& line : second.headers) {
    if (!is_volatile(line.name) && !first.headers.has(line.name))
      return failed("only the repeat has " + std::string(line.name));
  }
  if (compared == 0) return not_judged("the answer has no header line that belongs to the result");
  return passed(std::to_string(compared) + " header lines of the result are the same");
}

Judgement replay_marked(Bench& bench) {
  const auto [first, second] = send_twice(bench);
  if (!first.is_success() || !second.is_success())
    return first.is_success() ? failed("the repeat is answered " + in_words(second))
                              : not_judged("the first is answered " + in_words(first));
  if (const auto mark = replay_mark(first)) return failed(*mark + " marks the first answer");
  if (const auto mark = replay_mark(second)) return passed("the repeat carries " + *mark);
  return failed("no header tells the repeat's answer from a first one");
}

Judgement failure_replayed(Bench& bench) {
  if (!bench.options().failing_body) return not_judged("no --failing-body");
  Watch watch(bench);
  const auto request = bench.keyed(bench.fresh_key(), *bench.options().failing_body);
  const auto first = bench.send(request);
  const auto second = bench.send(request);
  const auto effects = watch.effects(0);
  const auto says =
      "first " + in_words(first) + ", repeat " + in_words(second) + "; " + in_words(effects);
  if (!first.is_refusal() || says_later(first))
    return not_judged(says + "; --failing-body is not refused with 4xx");
  if (first.status != second.status || first.body != second.body)
    return failed(says + "; the refusal is not repeated as it was");
  if (effects && *effects > 1) return failed(says + "; executed more than once");
  if (!replay_mark(second)) {
    const auto fresh = bench.send(bench.keyed(bench.fresh_key(), *bench.options().failing_body));
    if (fresh.body == first.body)
      return not_judged(says + ", the same refusal; unmarked, so it may have been decided anew");
  }
  return passed(says + ", the same refusal");
}

Judgement resource_changed(Bench& bench) {
  if (!bench.options().mutate) return not_judged("no --mutate");
  Watch watch(bench);
  const auto request = bench.keyed(bench.fresh_key());
  const auto first = bench.send(request);
  if (!first.is_success()) return not_judged("the first is answered " + in_words(first));
  const auto path = fill_in(bench.options().mutate->path, first.body);
  if (!path) return not_judged("--mutate: the answer has nothing at that pointer");
  auto change =
      bench.of({bench.options().mutate->method, *path}, bench.options().mutate_body.value_or(""));
  change.headers.add(bench.options().key_header, bench.fresh_key());
  const auto changed = bench.send(change);
  if (!changed.is_success())
    return not_judged("--mutate is answered " + in_words(changed) + ", nothing was changed");
  const auto again = bench.send(request);
  const auto says = "first " + in_words(first) + ", " + change.method + " " + in_words(changed) +
                    ", repeat " + in_words(again);
  if (again.status != first.status || again.body != first.body)
    return failed(says + "; not the representation that the first request got");
  const auto effects = watch.effects(1);
  if (effects && *effects > 2) return failed(says + "; " + in_words(effects));
  if (!bench.control.answers_tell_apart)
    return not_judged(says + "; but this API answers every request alike");
  return passed(says + " with the same bytes");
}

}  // namespace einmal::probe
