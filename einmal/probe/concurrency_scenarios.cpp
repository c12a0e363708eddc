#include <algorithm>

#include "einmal/probe/scenario.hpp"

namespace einmal::probe {

namespace {

/// A race is lost now and then only: each round is another chance.
constexpr int rounds = 4;

Judgement at_once(Bench& bench, std::size_t n) {
  Judgement judgement;
  for (int round = 1; round <= rounds; ++round) {
    const auto request = bench.slowed(bench.keyed(bench.fresh_key()));
    Watch watch(bench);
    auto answers = bench.send_at_once(request, n);
    for (auto& late : bench.settle(request)) answers.push_back(std::move(late));
    judgement = one_effect(bench, watch, answers,
                           "round " + std::to_string(round) + ", " + std::to_string(n) +
                               " at once and repeats until decided");
    if (judgement.verdict == Verdict::failed) break;
  }
  return judgement;
}

}  // namespace

Judgement two_at_once(Bench& bench) { return at_once(bench, 2); }

Judgement many_at_once(Bench& bench) { return at_once(bench, bench.options().concurrency); }

Judgement in_flight(Bench& bench) {
  const auto request = bench.slowed(bench.keyed(bench.fresh_key()));
  Watch watch(bench);
  auto running = bench.open();
  running.send(to_bytes(request));
  if (running.answer_begins(Milliseconds(50)))
    return not_judged("the request is over at once; --slow-header would keep it running");
  auto duplicate = bench.open();
  duplicate.send(to_bytes(request));
  // Who is told "success" while the first still runs was told of something that is not there yet.
  duplicate.answer_begins(bench.options().timeout);
  const bool first_was_over = running.answer_begins(Milliseconds(20));
  const auto second = duplicate.read_answer(request.method);
  const auto first = running.read_answer(request.method);
  if (second.is_success() && second.status != 202 && !first_was_over)
    return failed("a duplicate is answered " + in_words(second) + " while the first still runs");
  std::vector<Answer> answers{first, second};
  for (auto& late : bench.settle(request)) answers.push_back(std::move(late));
  return one_effect(bench, watch, answers,
                    "a duplicate while the first runs (" + in_words(second) + ") and after");
}

Judgement pipelined(Bench& bench) {
  const auto request = bench.keyed(bench.fresh_key());
  Watch watch(bench);
  const auto bytes = to_bytes(request);
  auto exchange = bench.open();
  exchange.send(bytes + bytes);
  std::vector<Answer> answers{exchange.read_answer(request.method)};
  answers.push_back(exchange.read_answer(request.method));
  for (auto& late : bench.settle(request)) answers.push_back(std::move(late));
  return one_effect(bench, watch, answers, "two copies in one write, then a repeat");
}

}  // namespace einmal::probe
