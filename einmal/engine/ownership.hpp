#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "einmal/engine/delays.hpp"
#include "einmal/engine/desk.hpp"

namespace einmal::detail {

class Handle;

/// One owned attempt from the durable claim to its durable end.
///
///   running (heartbeats) -> finishing -> finished
///                            |    ^ `-> unrecorded, writing goes on -> finished
///                            `----` store error: retried
///
/// The user's Execution is a handle; this stays until the handle is gone and nothing is left to
/// write. `finished` as uncertain may be finished once more by a late completion.
class Ownership final : public Call, public Hook<Ownership> {
 public:
  using Done = std::function<void(Finished)>;

  /// `sent`: when the claim was handed to the store.
  Ownership(Desk& desk, Scope scope, Record record, BootTime sent, Duration store_grace);
  ~Ownership() override;

  /// Once.
  std::unique_ptr<Execution> handle();
  const Scope& scope() const { return std::get<request::Transition>(request()).scope; }
  const Record& record() const { return record_; }

  bool may_send() const;
  void reconfirm(std::function<void(bool)> done);
  void on_lost(std::function<void()> handler);
  void finish(Finish asked, Event event, Done done);
  void handle_gone();
  /// The process stops: what runs is given back, what is being written is tried once more.
  void stop();
  /// The engine goes away: from now on it only deletes itself, after the store's answer if one is
  /// due.
  void detach();

 private:
  enum class Phase { running, finishing, finished };
  enum class CountedAs { nothing, execution, background };

  struct Wanted {
    Finish asked;
    Event event;
    Done done;
  };

  void on_timer();
  void count_as(CountedAs what);

  std::optional<Duration> lease() const { return record_.policies.lease; }
  void renew();
  void renewed(BootTime sent, Result<Answer> answer);
  void renew_failed();
  void beat_at(BootTime at);
  void lost();
  void end_reconfirmation(bool confirmed);

  void start(Wanted wanted);
  void send();
  void answered(Result<Answer> answer) override;
  void engine_gone() override { delete this; }
  void decided(Decision& decision);
  void unstorable();
  void failed(bool in_doubt);
  void set_finish_timer();
  void grace_is_over();
  void recorded(std::optional<Record>& record);
  void became_uncertain(Record& record);
  void lost_at_the_end(decision::Lost& lost);
  void end(FinishOutcome outcome, Finished finished, std::optional<Heard> news);
  void report(FinishOutcome outcome);
  bool may_answer() const;

  request::Transition& transition() { return std::get<request::Transition>(request()); }

  Desk& desk_;
  Record record_;
  Duration store_grace_;
  Handle* handle_ = nullptr;
  Phase phase_ = Phase::running;
  CountedAs counted_ = CountedAs::nothing;
  Timer timer_;  ///< Heartbeat while running; retry and grace while finishing.

  BootTime confirmed_;  ///< When the claim or the last confirmed renew was sent.
  Backoff renew_backoff_;
  SmallCall* renewing_ = nullptr;
  bool lost_ = false;
  std::function<void()> lost_handler_;
  std::function<void(bool)> reconfirming_;
  Timer reconfirm_deadline_;

  Finish asked_ = Finish::complete;
  Done done_;
  std::optional<Wanted> next_;  ///< Asked for while the stop's abandon is on its way.
  BodyKept body_kept_ = BodyKept::kept;
  UncertainCause cause_ = UncertainCause::none;
  BootTime asked_at_{};
  std::optional<BootTime> retry_at_;
  Backoff finish_backoff_;
  bool in_doubt_ = false;
  bool unrecorded_ = false;
  bool last_try_ = false;
  bool left_uncertain_ = false;  ///< Finished, and the record is uncertain.
  bool late_ = false;            ///< What is being written follows an earlier end.
  bool was_uncertain_ = false;   ///< With late: the record was uncertain when it began.
};

}  // namespace einmal::detail
