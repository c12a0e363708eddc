#include "einmal/probe/bench.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <list>
#include <map>
#include <thread>
#include <utility>

#include "einmal/base/bytes.hpp"

namespace einmal::probe {

using SteadyClock = std::chrono::steady_clock;

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::failed:
      return "failed";
    case Verdict::not_judged:
      break;
  }
  return "not judged";
}

Judgement passed(std::string evidence) { return {Verdict::passed, std::move(evidence)}; }
Judgement failed(std::string evidence) { return {Verdict::failed, std::move(evidence)}; }
Judgement not_judged(std::string evidence) { return {Verdict::not_judged, std::move(evidence)}; }

std::string Bench::fresh_key() {
  std::string bytes(13, '\0');
  random_.fill(bytes.data(), bytes.size());
  return "probe-" + to_hex(bytes);
}

Request Bench::of(const Operation& operation, std::string body) const {
  Request request{operation.method, options_.target.base + operation.path, {}, std::move(body)};
  request.headers.add("Host", options_.target.authority());
  request.headers.add("User-Agent", "einmal-probe");
  for (const auto& line : options_.headers) request.headers.add(line.name, line.value);
  if (!request.headers.has("Content-Type") && !request.body.empty())
    request.headers.add("Content-Type", "application/json");
  return request;
}

Request Bench::keyed(std::string_view key) const { return keyed(key, options_.body); }

Request Bench::keyed(std::string_view key, std::string body) const {
  auto request = of(options_.request, std::move(body));
  request.headers.add(options_.key_header, key);
  return request;
}

Request Bench::with_header(Request request,
                           const std::pair<std::string, std::string>& header) const {
  request.headers.set(header.first, header.second);
  return request;
}

Request Bench::slowed(Request request) const {
  return options_.slow_header ? with_header(std::move(request), *options_.slow_header) : request;
}

Exchange Bench::open(int receive_buffer) {
  count_request();
  pause(options_.pace);
  return Exchange(route_, options_.timeout, receive_buffer);
}

Answer Bench::send(const Request& request) {
  auto exchange = open();
  exchange.send(to_bytes(request));
  return exchange.read_answer(request.method);
}

std::vector<Answer> Bench::send_at_once(const Request& request, std::size_t n) {
  const auto bytes = to_bytes(request);
  const auto most = std::string_view(bytes).substr(0, bytes.size() - 1);
  std::list<Exchange> exchanges;
  for (std::size_t i = 0; i < n; ++i) {
    count_request();
    exchanges.emplace_back(route_, options_.timeout);
    exchanges.back().send(most);
  }
  for (auto& exchange : exchanges) exchange.send(std::string_view(bytes).substr(most.size()));
  std::vector<Answer> answers;
  for (auto& exchange : exchanges) answers.push_back(exchange.read_answer(request.method));
  return answers;
}

std::vector<Answer> Bench::settle(const Request& request) {
  const auto end = SteadyClock::now() + options_.patience;
  std::vector<Answer> answers;
  while (true) {
    answers.push_back(send(request));
    const auto& last = answers.back();
    if ((last.came() && !says_later(last)) || SteadyClock::now() >= end || is_exhausted())
      return answers;
    int seconds = 0;
    const auto after = last.headers.first("Retry-After").value_or("");
    std::from_chars(after.data(), after.data() + after.size(), seconds);
    pause(seconds > 0 ? Milliseconds(std::min(seconds, 2) * 1000) : Milliseconds(150));
  }
}

void Bench::pause(Milliseconds time) const {
  if (time.count() > 0) std::this_thread::sleep_for(time);
}

std::optional<long long> Bench::read_effects(std::string* why) {
  const auto say = [&](std::string text) {
    if (why) *why = std::move(text);
    return std::nullopt;
  };
  if (!options_.effects) return say("no effect counter (--effects)");
  const auto request = of(*options_.effects, {});
  Answer answer;
  for (int attempt = 0; attempt < 3 && !answer.is_success(); ++attempt) {
    if (attempt > 0) pause(Milliseconds(100));
    Exchange exchange(route_, options_.timeout);
    exchange.send(to_bytes(request));
    answer = exchange.read_answer(request.method);
  }
  if (!answer.is_success()) return say("the effect counter answers " + in_words(answer));
  boost::system::error_code error;
  const auto document = boost::json::parse(answer.body, error);
  if (error) return say("the effect counter's answer is not JSON");
  const auto* number = document.find_pointer(options_.effects_pointer, error);
  if (!number || !number->is_number())
    return say("no number at " + options_.effects_pointer + " of the effect counter");
  const auto value = number->to_number<std::int64_t>(error);
  if (error) return say("no whole number at " + options_.effects_pointer);
  return value;
}

bool Bench::wait_until_up(Milliseconds wait) {
  const auto end = SteadyClock::now() + wait;
  while (SteadyClock::now() < end) {
    if (Exchange(route_, Milliseconds(500)).is_open()) return true;
    pause(Milliseconds(50));
  }
  return false;
}

Watch::Watch(Bench& bench) : bench_(bench) {
  if (bench.control.counts) before_ = bench.read_effects();
}

std::optional<long long> Watch::effects(long long expected) {
  if (!before_) return std::nullopt;
  const auto end = SteadyClock::now() + std::max(bench_.options().settle * 5, Milliseconds(1000));
  auto now = bench_.read_effects();
  while (now && *now - *before_ < expected && SteadyClock::now() < end) {
    bench_.pause(Milliseconds(20));
    now = bench_.read_effects();
  }
  bench_.pause(bench_.options().settle);
  now = bench_.read_effects();
  if (!now) return std::nullopt;
  return *now - *before_;
}

bool Watch::sees_one(Milliseconds wait) {
  const auto end = SteadyClock::now() + wait;
  while (before_ && SteadyClock::now() < end) {
    const auto now = bench_.read_effects();
    if (now && *now > *before_) return true;
    bench_.pause(Milliseconds(2));
  }
  return false;
}

std::string in_words(const Answer& answer) {
  return answer.came() ? std::to_string(answer.status) : "nothing (" + answer.problem + ")";
}

std::string in_words(std::optional<long long> effects) {
  if (!effects) return "effects not counted";
  return std::to_string(*effects) + (*effects == 1 ? " effect" : " effects");
}

std::string tally(const std::vector<Answer>& answers) {
  std::map<int, std::size_t> counts;
  for (const auto& answer : answers) ++counts[answer.status];
  std::vector<std::pair<int, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [status, count] : sorted) {
    if (!text.empty()) text += ", ";
    if (count > 1) text += std::to_string(count) + " x ";
    text += status == 0 ? "no answer" : std::to_string(status);
  }
  return text;
}

bool says_later(const Answer& answer) {
  switch (answer.status) {
    case 202:
    case 409:
    case 425:
    case 429:
    case 503:
      return true;
    default:
      return false;
  }
}

std::optional<std::string> replay_mark(const Answer& answer) {
  for (const auto& line : answer.headers) {
    const bool by_name = http::iequals(line.name, "Idempotent-Replayed") ||
                         http::iequals(line.name, "Idempotency-Replayed") ||
                         http::iequals(line.name, "X-Idempotency-Replayed") ||
                         http::iequals(line.name, "X-Idempotent-Replayed");
    const bool by_value = http::istarts_with(line.name, "Idempot") ||
                          http::istarts_with(line.name, "X-Idempot") ||
                          http::iequals(line.name, "X-Cache");
    if ((by_name && !http::iequals(line.value, "false")) ||
        (by_value && (http::iequals(line.value, "replayed") || http::iequals(line.value, "hit"))))
      return std::string(line.name);
  }
  return std::nullopt;
}

Judgement one_effect(Bench& bench, Watch& watch, const std::vector<Answer>& answers,
                     std::string_view what, std::size_t keys) {
  const auto expected = static_cast<long long>(keys);
  const auto effects = watch.effects(expected);
  const auto says = std::string(what) + ": " + tally(answers) + "; " + in_words(effects) +
                    (keys > 1 ? " for " + std::to_string(keys) + " keys" : "");
  const Answer* result = nullptr;
  for (const auto& answer : answers) {
    if (answer.status == 500) return failed(says + "; a repeat must not be answered 500");
    if (!answer.is_success() || answer.status == 202) continue;
    if (keys == 1 && result && (result->body != answer.body || result->status != answer.status))
      return failed(says + "; two different results for one key");
    result = &answer;
  }
  if (effects && *effects > expected) return failed(says + "; executed more than once");
  if (effects && *effects < expected && keys == 1 && result)
    return failed(says + "; success without an effect");
  if (!effects) return not_judged(says + " (" + bench.control.counts_why_not + ")");
  if (!result) return failed(says + "; no attempt was ever given the result");
  return passed(says);
}

}  // namespace einmal::probe
