#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "einmal/base/random.hpp"
#include "einmal/probe/exchange.hpp"
#include "einmal/probe/options.hpp"

namespace einmal::probe {

enum class Verdict : std::uint8_t { passed, failed, not_judged };
std::string_view name_of(Verdict verdict);

/// A verdict and the one line that shows why.
struct Judgement {
  Verdict verdict = Verdict::not_judged;
  std::string evidence;
};
Judgement passed(std::string evidence);
Judgement failed(std::string evidence);
Judgement not_judged(std::string evidence);

/// What the target does when nothing is wrong: the measure of what comes later.
struct Control {
  Milliseconds latency{0};
  bool counts = false;  ///< The effect counter rises by one for each accepted request.
  std::string counts_why_not;
  bool answers_tell_apart = false;  ///< Two executions give two different bodies.
};

/// The target as scenarios see it: requests, effects and bounds.
class Bench {
 public:
  Bench(const Options& options, Route route, Random& random)
      : options_(options), route_(std::move(route)), random_(random) {}

  const Options& options() const { return options_; }
  Control control;

  /// A key that nobody has used, of 32 visible characters.
  std::string fresh_key();
  /// The configured request without a key.
  Request bare() const { return of(options_.request, options_.body); }
  Request keyed(std::string_view key) const;
  Request keyed(std::string_view key, std::string body) const;
  /// Another operation, with the configured headers.
  Request of(const Operation& operation, std::string body) const;
  /// `request`, made slow by the header given for that; unchanged without.
  Request slowed(Request request) const;
  Request with_header(Request request, const std::pair<std::string, std::string>& header) const;

  /// One connection, one request, one answer.
  Answer send(const Request& request);
  /// A connection for rude moves. Counts as one request.
  Exchange open(int receive_buffer = 0);
  /// The same bytes on `n` connections, released together: each lacks only its last byte until all
  /// are there.
  std::vector<Answer> send_at_once(const Request& request, std::size_t n);
  /// Repeats `request` while the answer says "not now" or does not come, as a client would, until
  /// the patience is over. All answers, the last one last.
  std::vector<Answer> settle(const Request& request);

  void pause(Milliseconds time) const;
  bool is_exhausted() const { return sent_ >= options_.max_requests; }
  std::size_t requests() const { return sent_; }

  /// The effect counter now. Retried while the target does not answer. Nothing: not configured, or
  /// unreadable, and `why` says so.
  std::optional<long long> read_effects(std::string* why = nullptr);
  /// Waits until the target accepts connections.
  bool wait_until_up(Milliseconds wait);

 private:
  void count_request() { ++sent_; }

  const Options& options_;
  Route route_;
  Random& random_;
  std::size_t sent_ = 0;
};

/// Effects since its making.
class Watch {
 public:
  explicit Watch(Bench& bench);
  /// Waits (not for ever) for `expected` effects, then looks once more for late ones. Nothing:
  /// effects cannot be counted here.
  std::optional<long long> effects(long long expected);
  /// Whether the first effect was seen within `wait`.
  bool sees_one(Milliseconds wait);

 private:
  Bench& bench_;
  std::optional<long long> before_;
};

/// "15 x 409, 201": the statuses, most frequent first.
std::string tally(const std::vector<Answer>& answers);
std::string in_words(const Answer& answer);
std::string in_words(std::optional<long long> effects);

/// Whether the answer says "not decided yet, ask again".
bool says_later(const Answer& answer);
/// Whether the answer calls itself a replay; the header that does.
std::optional<std::string> replay_mark(const Answer& answer);

/// The judgement on several sends of one key that must come to one effect and one result. `keys`
/// > 1: so many keys, each sent several times; then results are not compared.
Judgement one_effect(Bench& bench, Watch& watch, const std::vector<Answer>& answers,
                     std::string_view what, std::size_t keys = 1);

}  // namespace einmal::probe
