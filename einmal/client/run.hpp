#pragma once

#include "einmal/client/client.hpp"

namespace einmal::client {

/// One call: the attempts of one intent, whose lock is held.
class Client::Run {
 public:
  Run(Client& client, Entry entry, const http::HeaderLines& credentials, BootTime deadline);

  Outcome finish();

 private:
  /// Ends the run, or says how to go on.
  struct Next {
    std::optional<Verdict> verdict;
    std::optional<Duration> retry_after;
    bool failed_attempt = true;  ///< Counts against attempts and budget.
  };

  Verdict attempt_until_decided();
  /// A verdict that keeps the first byte from leaving; nothing: go on.
  std::optional<Verdict> may_send();
  bool is_too_old();
  Next attempt();
  Next judge_answer(Answer answer);
  Next not_sent(const exchange::NotSent& why);
  /// Asks an operation until it is settled.
  Next poll(const std::string& url);
  std::optional<Verdict> read_result(const std::string& url);
  std::optional<Answer> get(const std::string& url);
  /// Waits before the next attempt or poll; false: patience is over.
  bool wait(int repetition, const std::optional<Duration>& retry_after);
  Verdict out_of_patience() const;
  Outcome conclude(Verdict verdict);

  void doubt(Why since);
  /// Errors as Journal::save.
  Result<void> save();
  WireRequest wire_request() const;
  WireRequest wire_get(std::string url) const;
  Duration time_left() const;
  void tell(Point point);

  Client& client_;
  World& world_;
  const ClientOptions& options_;
  Entry entry_;
  const http::HeaderLines& credentials_;
  BootTime deadline_;
  int attempts_ = 0, failures_ = 0, waits_ = 0;
  Why last_ = Why::unreachable;  ///< The last reason why nothing happened.
  std::optional<Answer> last_answer_;
  std::string detail_;
};

}  // namespace einmal::client
