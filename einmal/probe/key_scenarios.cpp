#include <array>

#include "einmal/probe/scenario.hpp"

namespace einmal::probe {

namespace {

/// Two answers to requests that must not be taken for one: both executed, or refused.
Judgement kept_apart(Bench& bench, Watch& watch, const Answer& first, const Answer& second,
                     const std::string& what) {
  const long long wanted = (first.is_success() ? 1 : 0) + (second.is_success() ? 1 : 0);
  const auto effects = watch.effects(wanted);
  const auto says =
      what + ": " + in_words(first) + ", " + in_words(second) + "; " + in_words(effects);
  if (!first.came() || !second.came() || first.status >= 500 || second.status >= 500)
    return failed(says + "; neither executed nor refused");
  if (wanted == 2 && bench.control.answers_tell_apart && first.body == second.body)
    return failed(says + "; the second was given the first one's result");
  if (first.is_success() && !second.is_success())
    return failed(says + "; the second is taken for a repeat of the first");
  if (effects && *effects != wanted) return failed(says + "; taken for one request");
  if (!effects && wanted > 0 && !bench.control.answers_tell_apart)
    return not_judged(says + " (" + bench.control.counts_why_not + ")");
  return passed(says);
}

}  // namespace

Judgement key_missing(Bench& bench) {
  Watch watch(bench);
  const auto first = bench.send(bench.bare());
  const auto second = bench.send(bench.bare());
  return kept_apart(bench, watch, first, second, "two requests without a key");
}

Judgement key_empty(Bench& bench) {
  Watch watch(bench);
  const auto first = bench.send(bench.keyed(""));
  const auto second = bench.send(bench.keyed(""));
  return kept_apart(bench, watch, first, second, "two requests with an empty key");
}

Judgement key_long(Bench& bench) {
  Watch watch(bench);
  const auto stem = bench.fresh_key() + std::string(400, 'k');
  const auto first = bench.send(bench.keyed(stem + "1"));
  const auto second = bench.send(bench.keyed(stem + "2"));
  return kept_apart(bench, watch, first, second, "two keys of 433 bytes that differ in the last");
}

Judgement key_odd(Bench& bench) {
  const auto stem = bench.fresh_key();
  const std::array<std::array<std::string, 2>, 5> pairs{{{stem + "-a", stem + "-A"},
                                                         {stem + "-1", stem + "-01"},
                                                         {stem + ":*", stem + ":x"},
                                                         {stem + "%41", stem + "A"},
                                                         {stem + "'--", stem + "'/*"}}};
  std::string evidence;
  bool judged = true;
  for (const auto& [one, other] : pairs) {
    Watch watch(bench);
    const auto first = bench.send(bench.keyed(one));
    const auto second = bench.send(bench.keyed(other));
    const auto ends = one.substr(stem.size()) + " and " + other.substr(stem.size());
    auto each = kept_apart(bench, watch, first, second, "keys ending in " + ends);
    if (each.verdict == Verdict::failed) return each;
    judged = judged && each.verdict == Verdict::passed;
    evidence += (evidence.empty() ? "" : ", ") + in_words(first) + "+" + in_words(second);
  }
  evidence = "five pairs of keys that differ in case, digits, wildcards, escapes: " + evidence;
  return judged ? passed(evidence) : not_judged(evidence);
}

Judgement key_repeated(Bench& bench) {
  std::string evidence;
  bool accepted = false;
  for (const bool equal : {true, false}) {
    const auto key = bench.fresh_key();
    auto request = bench.keyed(key);
    request.headers.add(bench.options().key_header, equal ? key : bench.fresh_key());
    Watch watch(bench);
    const auto answer = bench.send(request);
    const auto effects = watch.effects(answer.is_success() ? 1 : 0);
    evidence += (equal ? "two equal key lines: " : ", two unlike: ") + in_words(answer) + " and " +
                in_words(effects);
    accepted = accepted || !answer.is_refusal() || (effects && *effects > 0);
  }
  return accepted ? failed(evidence + "; which line counts is anybody's guess") : passed(evidence);
}

Judgement key_quoted(Bench& bench) {
  const auto key = bench.fresh_key();
  Watch watch(bench);
  const auto quoted = bench.keyed("\"" + key + "\"");
  std::vector<Answer> answers{bench.send(quoted), bench.send(quoted)};
  if (!answers.front().is_success())
    return failed("a quoted key is answered " + in_words(answers.front()));
  auto judgement = one_effect(bench, watch, answers, "a quoted key, twice");
  if (judgement.verdict != Verdict::passed) return judgement;
  const auto unquoted = bench.send(bench.keyed(key));
  const auto effects = watch.effects(1);
  judgement.evidence += effects && *effects == 1 && unquoted.body == answers.front().body
                            ? "; unquoted it is the same key"
                            : "; unquoted it is another key (" + in_words(unquoted) + ")";
  return judgement;
}

Judgement other_caller(Bench& bench) {
  if (!bench.options().other_caller) return not_judged("no --other-caller");
  Watch watch(bench);
  const auto request = bench.keyed(bench.fresh_key());
  const auto first = bench.send(request);
  if (!first.is_success()) return not_judged("the first caller is answered " + in_words(first));
  const auto foreign = bench.send(bench.with_header(request, *bench.options().other_caller));
  const auto effects = watch.effects(foreign.is_success() ? 2 : 1);
  const auto says = "the other caller, same key: " + in_words(foreign) + "; " + in_words(effects);
  if (foreign.status == 401 || foreign.status == 403)
    return not_judged(says + "; --other-caller is not let in at all");
  if (foreign.body == first.body && (bench.control.answers_tell_apart || replay_mark(foreign)))
    return failed(says + "; it was given the first caller's result");
  if (!foreign.is_success()) return failed(says + "; it is told that somebody else uses the key");
  if (effects && *effects != 2) return failed(says + "; the other caller's request is lost");
  if (!effects && !bench.control.answers_tell_apart)
    return not_judged(says + " (" + bench.control.counts_why_not + ")");
  return passed(says + " of their own");
}

Judgement other_operation(Bench& bench) {
  if (!bench.options().other_request) return not_judged("no --other-request");
  Watch watch(bench);
  const auto key = bench.fresh_key();
  const auto& body =
      bench.options().other_body ? *bench.options().other_body : bench.options().body;
  const auto other_with = [&](std::string_view with_key) {
    auto request = bench.of(*bench.options().other_request, body);
    request.headers.add(bench.options().key_header, with_key);
    return request;
  };
  const auto control = bench.send(other_with(bench.fresh_key()));
  if (!control.is_success())
    return not_judged("--other-request with a key of its own is answered " + in_words(control));
  const auto first = bench.send(bench.keyed(key));
  const auto other = bench.send(other_with(key));
  const auto says = "the other operation, same key: " + in_words(other);
  if (!first.is_success()) return not_judged("the first is answered " + in_words(first));
  if (other.body == first.body && (bench.control.answers_tell_apart || replay_mark(other)))
    return failed(says + "; it was given the first operation's result");
  if (other.is_success()) {
    if (replay_mark(other)) return failed(says + "; it calls itself a replay");
    return passed(says + ", a result of its own");
  }
  return other.is_refusal() ? passed(says + ", refused")
                            : failed(says + "; neither executed nor refused");
}

}  // namespace einmal::probe
