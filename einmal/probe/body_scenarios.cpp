#include <initializer_list>

#include "einmal/probe/json_body.hpp"
#include "einmal/probe/scenario.hpp"

namespace einmal::probe {

namespace {

constexpr std::string_view extra_member = "einmal_probe";

/// The same request in other words: it may be replayed or refused as another, never executed again.
Judgement same_in_other_words(Bench& bench, const std::string& body, const Request& retold,
                              const std::string& bytes, const std::string& what) {
  Watch watch(bench);
  const auto key = std::string(*retold.headers.first(bench.options().key_header));
  const auto first = bench.send(bench.keyed(key, body));
  if (!first.is_success()) return not_judged(what + ": the first is answered " + in_words(first));
  auto exchange = bench.open();
  exchange.send(bytes);
  const auto again = exchange.read_answer(retold.method);
  const auto effects = watch.effects(1);
  const auto says =
      what + ": " + in_words(first) + ", then " + in_words(again) + "; " + in_words(effects);
  if (effects && *effects != 1) return failed(says);
  if (again.is_success() && again.body != first.body)
    return failed(says + "; two results for one key");
  if (!again.is_success() && !again.is_refusal())
    return failed(says + "; neither replayed nor refused");
  if (!effects) return not_judged(says + " (" + bench.control.counts_why_not + ")");
  return passed(says + (again.is_success() ? ", replayed" : ", refused as another request: safe"));
}

Judgement retold_json(Bench& bench, const std::string& body, const std::string& other,
                      const std::string& what) {
  const auto request = bench.keyed(bench.fresh_key(), other);
  return same_in_other_words(bench, body, request, to_bytes(request), what);
}

std::optional<std::string> another_body(const Bench& bench) {
  if (bench.options().changed_body) return bench.options().changed_body;
  const auto json = JsonBody::read(bench.options().body);
  return json ? json->changed() : std::nullopt;
}

/// Another request under a used key: it must be refused, and the first result stay as it was.
Judgement refused_as_another(Bench& bench, const std::string& one, const std::string& other,
                             const std::string& what) {
  const auto control = bench.send(bench.keyed(bench.fresh_key(), other));
  if (!control.is_success())
    return not_judged(what + ": with a key of its own it is answered " + in_words(control));
  const auto key = bench.fresh_key();
  Watch watch(bench);
  const auto first = bench.send(bench.keyed(key, one));
  if (!first.is_success()) return not_judged(what + ": the first is answered " + in_words(first));
  const auto second = bench.send(bench.keyed(key, other));
  const auto third = bench.send(bench.keyed(key, one));
  const auto effects = watch.effects(1);
  const auto says = what + ": " + in_words(first) + ", changed " + in_words(second) +
                    ", first again " + in_words(third) + "; " + in_words(effects);
  if (effects && *effects > 1) return failed(says);
  if (second.is_success())
    return failed(says + (second.body == first.body ? "; it was given the first one's result"
                                                    : "; accepted under a used key"));
  if (!second.is_refusal()) return failed(says + "; not refused");
  if (third.status != first.status || third.body != first.body)
    return failed(says + "; the first result did not survive it");
  return passed(says);
}

}  // namespace

Judgement body_changed(Bench& bench) {
  const auto other = another_body(bench);
  if (!other) return not_judged("no --changed-body, and none could be made up");
  return refused_as_another(bench, bench.options().body, *other, "another body");
}

Judgement body_changed_in_flight(Bench& bench) {
  const auto other = another_body(bench);
  if (!other) return not_judged("no --changed-body, and none could be made up");
  const auto key = bench.fresh_key();
  Watch watch(bench);
  const auto slow = bench.slowed(bench.keyed(key));
  auto running = bench.open();
  running.send(to_bytes(slow));
  if (running.answer_begins(Milliseconds(50)))
    return not_judged("the request is over at once; --slow-header would keep it running");
  const auto second = bench.send(bench.slowed(bench.keyed(key, *other)));
  const auto first = running.read_answer(slow.method);
  const auto effects = watch.effects(1);
  const auto says = "changed while the first runs: " + in_words(second) + ", the first " +
                    in_words(first) + "; " + in_words(effects);
  if (effects && *effects > 1) return failed(says);
  if (!second.is_refusal()) return failed(says + "; not refused");
  if (!first.is_success()) return failed(says + "; the first suffered from it");
  return passed(says);
}

Judgement body_chunked(Bench& bench) {
  if (bench.options().body.empty()) return not_judged("the request has no body");
  const auto request = bench.keyed(bench.fresh_key());
  return same_in_other_words(bench, bench.options().body, request, to_chunked_bytes(request),
                             "the repeat in chunks");
}

Judgement json_reordered(Bench& bench) {
  const auto json = JsonBody::read(bench.options().body);
  if (!json || json->size() < 2) return not_judged("the body is not a JSON object of two members");
  return retold_json(bench, bench.options().body, json->reordered(), "members in another order");
}

Judgement json_respaced(Bench& bench) {
  const auto json = JsonBody::read(bench.options().body);
  if (!json) return not_judged("the body is not a JSON object");
  return retold_json(bench, bench.options().body, json->respaced(), "other white space");
}

Judgement json_numbers(Bench& bench) {
  const auto json = JsonBody::read(bench.options().body);
  if (!json) return not_judged("the body is not a JSON object");
  std::string evidence;
  for (const std::string_view spelling : {"10.0", "1e1", "100E-1"}) {
    const auto what = "10 written as " + std::string(spelling);
    auto judgement = retold_json(bench, json->with(extra_member, "10"),
                                 json->with(extra_member, spelling), what);
    if (judgement.verdict != Verdict::passed) return judgement;
    evidence += (evidence.empty() ? "" : " / ") + judgement.evidence;
  }
  return passed(evidence);
}

Judgement json_big_integers(Bench& bench) {
  const auto json = JsonBody::read(bench.options().body);
  if (!json) return not_judged("the body is not a JSON object");
  return refused_as_another(bench, json->with(extra_member, "9007199254740993"),
                            json->with(extra_member, "9007199254740992"),
                            "9007199254740993 changed to ...992");
}

}  // namespace einmal::probe
