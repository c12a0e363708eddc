#include "einmal/client/run.hpp"

#include <algorithm>
#include <utility>

#include "einmal/client/judge.hpp"
#include "einmal/client/operation.hpp"
#include "einmal/client/problem_facts.hpp"
#include "einmal/client/window.hpp"

namespace einmal::client {

namespace {

constexpr auto discovery_time = std::chrono::seconds(5);

}  // namespace

Client::Run::Run(Client& client, Entry entry, const http::HeaderLines& credentials,
                 BootTime deadline)
    : client_(client),
      world_(client.world_),
      options_(client.options_),
      entry_(std::move(entry)),
      credentials_(credentials),
      deadline_(deadline) {}

Outcome Client::Run::finish() {
  tell(Point::intent_durable);
  if (auto kept_back = may_send()) return conclude(std::move(*kept_back));
  return conclude(attempt_until_decided());
}

std::optional<Verdict> Client::Run::may_send() {
  if (!entry_.progress.doubt.in_doubt || options_.send_too_old || !is_too_old())
    return std::nullopt;
  detail_ =
      "the server may have forgotten this key and would do it again; nothing was sent: look there "
      "for what became of it";
  return verdict::Unknown{Why::too_old, std::nullopt};
}

bool Client::Run::is_too_old() {
  if (!entry_.progress.first_sent) return false;
  // A clock that was set back proves nothing either: the difference counts, whichever way.
  const Duration difference = world_.clock.wall_now() - *entry_.progress.first_sent;
  const Duration age = difference < Duration(0) ? -difference : difference;
  std::optional<Duration> window;
  const auto asked =
      world_.transport.send(wire_get(discovery_url(entry_.intent.url)),
                            std::min<Duration>(discovery_time, time_left()), nullptr);
  const auto* answer = std::get_if<Answer>(&asked);
  if (answer != nullptr && answer->status == 200)
    window = published_retention(answer->body, entry_.intent.method, path_of(entry_.intent.url));
  return age >= window.value_or(options_.assumed_window);
}

Verdict Client::Run::attempt_until_decided() {
  client_.budget_.first_attempt();
  while (true) {
    Next next = attempt();
    if (next.verdict) return std::move(*next.verdict);
    if (next.failed_attempt) {
      ++failures_;
      if (failures_ >= options_.patience.max_attempts) return out_of_patience();
    }
    ++waits_;
    if (!wait(waits_, next.retry_after)) return out_of_patience();
    if (next.failed_attempt && !client_.budget_.take()) return out_of_patience();
  }
}

Client::Run::Next Client::Run::attempt() {
  const Doubt before = entry_.progress.doubt;
  Progress& progress = entry_.progress;
  progress.attempts += 1;
  progress.verdict.reset();
  if (!before.in_doubt) {
    progress.doubt = {true, Why::no_answer};
    progress.first_sent = world_.clock.wall_now();
  }
  if (auto saved = save(); !saved) {
    detail_ = saved.error().message;
    progress.doubt = before;
    progress.attempts -= 1;
    if (before.in_doubt) return {verdict::Unknown{Why::journal, last_answer_}, {}, true};
    return {verdict::NotAttempted{Why::journal, last_answer_}, {}, true};
  }
  tell(Point::attempt_durable);
  ++attempts_;
  const Duration time = std::min(options_.patience.attempt_timeout, time_left());
  auto exchanged = world_.transport.send(wire_request(), time, world_.watcher);
  if (const auto* not_out = std::get_if<exchange::NotSent>(&exchanged)) {
    progress.doubt = before;
    return not_sent(*not_out);
  }
  if (const auto* lost = std::get_if<exchange::NoAnswer>(&exchanged)) {
    detail_ = lost->why;
    doubt(Why::no_answer);
    return {};
  }
  progress.doubt = before;
  return judge_answer(std::get<Answer>(std::move(exchanged)));
}

Client::Run::Next Client::Run::not_sent(const exchange::NotSent& why) {
  detail_ = why.why;
  last_ = Why::unreachable;
  if (why.for_good) return {out_of_patience(), {}, true};
  return {};
}

Client::Run::Next Client::Run::judge_answer(Answer answer) {
  Judged judged = judge(answer, entry_.progress.doubt, entry_.intent.url);
  Next next;
  next.retry_after = client::retry_after(answer, world_.clock.wall_now());
  last_answer_ = std::move(answer);
  if (auto* final = std::get_if<judged::Final>(&judged)) {
    next.verdict = std::move(final->verdict);
  } else if (const auto* operation = std::get_if<judged::Poll>(&judged)) {
    doubt(Why::in_progress);
    return poll(operation->url);
  } else if (std::holds_alternative<judged::Wait>(judged)) {
    doubt(Why::in_progress);
    next.failed_attempt = false;
  } else {
    const auto& again = std::get<judged::Again>(judged);
    last_ = again.in_doubt || again.why != Why::server_error ? again.why : Why::unavailable;
    if (again.in_doubt) doubt(again.why);
  }
  return next;
}

Client::Run::Next Client::Run::poll(const std::string& url) {
  std::optional<Duration> retry_after = client::retry_after(*last_answer_, world_.clock.wall_now());
  for (int polls = 1;; ++polls) {
    if (!wait(polls, retry_after)) return {out_of_patience(), {}, false};
    retry_after.reset();
    auto answer = get(url);
    if (!answer) continue;
    retry_after = client::retry_after(*answer, world_.clock.wall_now());
    if (answer->status == 404) return {{}, {}, false};
    if (answer->status == 410) return {verdict::Unknown{Why::expired, last_answer_}, {}, false};
    const std::string state = answer->status == 200 ? read_state(*answer) : "";
    if (state == "completed" || state == "failed") {
      if (auto verdict = read_result(url + "/result")) return {std::move(verdict), {}, false};
    } else if (!state.empty()) {
      doubt(state == "uncertain" ? Why::uncertain : Why::in_progress);
    }
  }
}

std::optional<Verdict> Client::Run::read_result(const std::string& url) {
  auto answer = get(url);
  if (!answer) return std::nullopt;
  Judged judged = judge(*answer, entry_.progress.doubt, entry_.intent.url);
  auto* final = std::get_if<judged::Final>(&judged);
  if (final == nullptr || answer->status == 404) return std::nullopt;
  last_answer_ = std::move(*answer);
  return std::move(final->verdict);
}

std::optional<Answer> Client::Run::get(const std::string& url) {
  auto exchanged = world_.transport.send(
      wire_get(url), std::min(options_.patience.attempt_timeout, time_left()), nullptr);
  auto* answer = std::get_if<Answer>(&exchanged);
  if (answer == nullptr) return std::nullopt;
  return std::move(*answer);
}

bool Client::Run::wait(int repetition, const std::optional<Duration>& retry_after) {
  const Duration time = wait_before(repetition, options_.patience, retry_after, world_.random);
  if (time >= time_left()) return false;
  world_.pause.pause(time);
  return true;
}

Verdict Client::Run::out_of_patience() const {
  const Doubt& doubt = entry_.progress.doubt;
  if (doubt.in_doubt) return verdict::Unknown{doubt.why, last_answer_};
  return verdict::NotAttempted{last_, last_answer_};
}

Outcome Client::Run::conclude(Verdict verdict) {
  Progress& progress = entry_.progress;
  const Why because = why(verdict);
  const bool certain =
      is_settled(verdict) || std::holds_alternative<verdict::NotAttempted>(verdict);
  if (certain) progress.doubt.in_doubt = false;
  if (!certain && because != Why::too_old && because != Why::journal)
    progress.doubt = {true, because};
  Outcome outcome;
  outcome.intent = entry_.intent.name;
  outcome.key = entry_.intent.key;
  outcome.attempts = attempts_;
  if (!is_settled(verdict) || std::holds_alternative<verdict::Refused>(verdict))
    outcome.detail = detail_;
  progress.verdict = verdict;
  const Answer* answer = answer_of(verdict);
  if (answer != nullptr && answer->body.size() > options_.largest_kept_answer) {
    Answer cut = *answer;
    cut.body.clear();
    cut.body_cut = true;
    progress.verdict = make_verdict(name(verdict), because, std::move(cut));
  }
  if (auto saved = save(); !saved) outcome.journal_error = saved.error();
  outcome.verdict = std::move(verdict);
  tell(Point::verdict_durable);
  return outcome;
}

void Client::Run::doubt(Why since) { entry_.progress.doubt = {true, since}; }

Result<void> Client::Run::save() {
  entry_.progress.changed = world_.clock.wall_now();
  return world_.journal.save(entry_);
}

WireRequest Client::Run::wire_request() const {
  const Intent& intent = entry_.intent;
  WireRequest request{intent.method, intent.url, intent.headers, intent.body};
  const bool quoted = intent.key_style == KeyStyle::quoted;
  request.headers.add(intent.key_header, quoted ? '"' + intent.key + '"' : intent.key);
  for (const auto line : credentials_) request.headers.add(line.name, line.value);
  return request;
}

WireRequest Client::Run::wire_get(std::string url) const {
  WireRequest request{"GET", std::move(url), entry_.intent.headers, {}};
  request.headers.remove_if([](const http::HeaderLine& line) {
    return http::istarts_with(line.name, "Content-") || http::istarts_with(line.name, "If-") ||
           http::iequals(line.name, "Prefer");
  });
  for (const auto line : credentials_) request.headers.add(line.name, line.value);
  return request;
}

Duration Client::Run::time_left() const {
  return std::max(Duration(0), deadline_ - world_.clock.boot_now());
}

void Client::Run::tell(Point point) {
  if (world_.watcher != nullptr) world_.watcher->at(point);
}

}  // namespace einmal::client
