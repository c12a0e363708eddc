#include <array>

#include "einmal/probe/scenario.hpp"

namespace einmal::probe {

namespace {

/// Repeats until decided and judges; the answers are those that a client got.
Judgement after_repeats(Bench& bench, Watch& watch, const Request& request,
                        const std::string& what) {
  auto answers = bench.settle(request);
  answers.push_back(bench.send(request));
  return one_effect(bench, watch, answers, what + ", then repeats");
}

}  // namespace

Judgement answer_lost(Bench& bench) {
  const auto request = bench.keyed(bench.fresh_key());
  Watch watch(bench);
  auto exchange = bench.open();
  exchange.send(to_bytes(request));
  exchange.answer_begins(bench.options().timeout);
  exchange.reset();
  return after_repeats(bench, watch, request, "reset with the whole answer unread");
}

Judgement answer_cut(Bench& bench) {
  const auto request = bench.keyed(bench.fresh_key());
  Watch watch(bench);
  auto exchange = bench.open();
  exchange.send(to_bytes(request));
  exchange.read_only(9);
  exchange.reset();
  return after_repeats(bench, watch, request, "reset after nine bytes of the answer");
}

Judgement client_hangs_up(Bench& bench) {
  const auto half = std::max(bench.control.latency / 2, Milliseconds(1));
  std::vector<Answer> answers;
  std::size_t keys = 0;
  Watch watch(bench);
  for (const bool rude : {false, true}) {
    for (const auto moment : {Milliseconds(0), half, Milliseconds(60)}) {
      const auto request = bench.slowed(bench.keyed(bench.fresh_key()));
      auto exchange = bench.open();
      exchange.send(to_bytes(request));
      bench.pause(moment);
      if (rude)
        exchange.reset();
      else
        exchange.close();
      for (auto& answer : bench.settle(request)) answers.push_back(std::move(answer));
      ++keys;
    }
  }
  return one_effect(bench, watch, answers, "closed or reset while it runs, then repeats", keys);
}

Judgement client_half_closes(Bench& bench) {
  const auto request = bench.slowed(bench.keyed(bench.fresh_key()));
  Watch watch(bench);
  auto exchange = bench.open();
  exchange.send(to_bytes(request));
  exchange.half_close();
  const auto first = exchange.read_answer(request.method);
  auto answers = bench.settle(request);
  if (first.came()) answers.insert(answers.begin(), first);
  return one_effect(bench, watch, answers,
                    "half-closed, answered " + in_words(first) + ", then repeats");
}

Judgement half_sent(Bench& bench) {
  if (bench.options().body.size() < 2) return not_judged("the request has no body to cut");
  const auto request = bench.keyed(bench.fresh_key());
  Watch watch(bench);
  auto exchange = bench.open();
  exchange.send(head_bytes(request) + request.body.substr(0, request.body.size() / 2));
  bench.pause(Milliseconds(50));
  exchange.reset();
  const auto effects = watch.effects(0);
  if (effects && *effects > 0)
    return failed("half of the body was sent, then reset: " + in_words(effects));
  return after_repeats(bench, watch, request, "half of the body, reset");
}

Judgement slow_sender(Bench& bench) {
  if (bench.options().body.size() < 2) return not_judged("the request has no body to send slowly");
  const auto request = bench.keyed(bench.fresh_key());
  Watch watch(bench);
  auto slow = bench.open();
  slow.send(head_bytes(request));
  slow.send(request.body.substr(0, 1));
  bench.pause(Milliseconds(100));
  std::vector<Answer> answers{bench.send(request)};
  bench.pause(Milliseconds(100));
  slow.send(request.body.substr(1));
  answers.push_back(slow.read_answer(request.method));
  for (auto& late : bench.settle(request)) answers.push_back(std::move(late));
  return one_effect(bench, watch, answers, "a slow sender overtaken by its own repeat");
}

Judgement slow_reader(Bench& bench) {
  const auto request = bench.keyed(bench.fresh_key());
  Watch watch(bench);
  auto exchange = bench.open(2048);
  exchange.send(to_bytes(request));
  std::vector<Answer> answers{exchange.read_answer(request.method, 16, Milliseconds(5))};
  if (!answers.front().came()) return failed("a slow reader gets " + in_words(answers.front()));
  answers.push_back(bench.send(request));
  return one_effect(bench, watch, answers, "the answer read 16 bytes at a time, then a repeat");
}

Judgement hidden_resends(Bench& bench) {
  if (!bench.control.counts) return not_judged(bench.control.counts_why_not);
  Watch watch(bench);
  std::vector<std::string> sent;
  const auto clean = bench.send(bench.keyed(bench.fresh_key()));
  sent.push_back("one answered " + in_words(clean));
  {
    auto exchange = bench.open();
    exchange.send(to_bytes(bench.keyed(bench.fresh_key())));
    bench.pause(bench.control.latency / 2);
    exchange.reset();
    sent.emplace_back("one reset");
  }
  if (bench.options().fault_header) {
    const auto faulty = bench.send(
        bench.with_header(bench.keyed(bench.fresh_key()), *bench.options().fault_header));
    sent.push_back("one with the fault, answered " + in_words(faulty));
  }
  bench.pause(bench.control.latency * 2);  // Nobody waits for the answer of the one that was reset.
  const auto limit = static_cast<long long>(sent.size());
  const auto effects = watch.effects(limit);
  std::string says = "each sent once: ";
  for (const auto& each : sent) says += each + (&each == &sent.back() ? "; " : ", ");
  says += in_words(effects);
  if (!effects) return not_judged(says);
  if (*effects > limit) return failed(says + "; somebody on the way sends again");
  if (clean.is_success() && *effects < 1) return failed(says + "; success without an effect");
  return passed(says);
}

}  // namespace einmal::probe
