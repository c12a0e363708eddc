#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "einmal/engine/delays.hpp"
#include "einmal/engine/desk.hpp"

namespace einmal::detail {

/// One `Engine::begin` from its call to its answer: quota, claim, other profile, in doubt, wait.
///
///   asking quota -> claiming -> answered
///                    |   ^  `-> reading profile -> claiming
///                    |   `----- waiting -> answered
///                    `-> withdrawing: nobody listens any more (dropped, or given up in doubt), and
///                        what the store may have given us goes back
///
/// Deletes itself when it is answered and nothing is left to withdraw.
class Beginning final : public Call, public Waiter, public Hook<Beginning> {
 public:
  Beginning(Desk& desk, BeginRequest request, std::function<void(Begun)> done);
  ~Beginning() override;

  void start();
  Engine::Ticket ticket() const { return ticket_; }
  bool is_waiting() const { return phase_ == Phase::waiting; }
  /// Nobody wants the answer any more.
  void drop();
  /// The process stops: no answer but Draining, and one last try to withdraw.
  void stop();
  /// The engine goes away before the store answers: from now on it only deletes itself.
  void detach();
  void quota_checked(Quotas::Verdict verdict);
  void profile_read(const Digest& id, const Result<Answer>& answer);

 private:
  enum class Phase { answering, asking_quota, claiming, reading_profile, waiting, withdrawing };
  enum class CountedAs { nothing, claim, background };

  void answered(Result<Answer> answer) override;
  void engine_gone() override { delete this; }
  void heard(const Heard& news) override;
  void on_timer();

  void claim();
  Event claim_event();
  void claim_answered(Result<Answer> answer);
  void on(decision::Execute& execute);
  void on(decision::Replay& replay);
  void on(decision::Mismatch& mismatch);
  void on(decision::OtherProfile& other);
  void on(decision::InProgress& in_progress);
  void on(decision::Uncertain& uncertain);
  void on(decision::Gone& gone);
  template <class Other>
  void on(Other& other);
  void claim_under(std::shared_ptr<const Profile> profile);
  void refuse_generation(Record record);

  void give_up(Begun answer, BeginOutcome outcome);
  void withdraw();
  void try_to_withdraw();
  void withdrawal_answered(Result<Answer> answer);
  void nothing_left();

  void answer_soon(Begun answer, BeginOutcome outcome);
  void answer(Begun answer, BeginOutcome outcome, const Record* record, bool entered = false);
  BeginReport report(BeginOutcome outcome, const Record* record);
  void count_as(CountedAs what);
  begun::InProgress in_progress(Duration age, std::optional<Duration> lease_left);

  request::Transition& transition() { return std::get<request::Transition>(request()); }
  const Scope& scope() { return transition().scope; }
  BootTime deadline() const { return began_ + desk_.limits.store_deadline; }

  Desk& desk_;
  Policies policies_;
  InFlight in_flight_;
  Duration wait_;
  Duration store_grace_;
  std::shared_ptr<const FingerprintSource> source_;
  std::function<void(Begun)> done_;

  Phase phase_ = Phase::claiming;
  CountedAs counted_ = CountedAs::nothing;
  Engine::Ticket ticket_;
  Timer timer_;
  Backoff backoff_;
  const BootTime began_;
  std::optional<std::pair<Begun, BeginOutcome>> soon_;

  OwnerToken owner_;
  Fingerprint fingerprint_;
  std::shared_ptr<const Profile> profile_;
  int other_profiles_ = 0;
  bool in_doubt_ = false;  ///< An earlier send of this claim may be durable.
  bool detached_ = false;
  bool last_try_ = false;                  ///< Withdrawing, and no retry after the next answer.
  std::optional<Generation> seen_before_;  ///< Highest generation seen before the first send.
  std::optional<Record> held_;             ///< Withdrawing: what the store gave us.

  std::optional<BootTime> wait_began_;
  OperationId awaited_;
  Duration awaited_age_{};  ///< Of the attempt, when the wait began.
};

}  // namespace einmal::detail
