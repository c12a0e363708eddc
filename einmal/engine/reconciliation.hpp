#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "einmal/engine/desk.hpp"
#include "einmal/engine/reconciler.hpp"

namespace einmal::detail {

/// Looks for uncertain records from time to time, has a reconciler ask what became of them, and
/// settles each by compare-and-set on the generation that was looked at, with a row in the audit.
/// What it remembers are delays only: the store says what is uncertain, so a restart loses nothing
/// and a record that somebody else settled is dropped. Several processes on one store may ask about
/// the same record; one of them settles it.
class Reconciliation {
 public:
  explicit Reconciliation(Desk& desk);
  ~Reconciliation();
  Reconciliation(const Reconciliation&) = delete;
  Reconciliation& operator=(const Reconciliation&) = delete;

  void start(Reconciler& reconciler, std::string name_space, Duration interval);
  void stop();

 private:
  /// One uncertain record.
  struct Case {
    Case(StoredRecord found, ReconcileRules as_configured, BootTime now)
        : record(std::move(found)), rules(std::move(as_configured)), first_seen(now), due(now) {}

    StoredRecord record;
    ReconcileRules rules;
    BootTime first_seen, due, asked{};
    unsigned questions = 0;   ///< Whose answer settled nothing: the delay grows with them.
    unsigned unknown = 0;     ///< Of these, all but those that waited for quiescence.
    std::uint64_t round = 0;  ///< Of the last look that found it.
    bool at_work = false;     ///< Being asked about, or being settled.
    bool given_up = false;
  };

  void look(std::string after);
  void found(const StoredRecord& record);
  void round_ended();
  void work();
  void ask(const Scope& scope, Case& one);
  void answered(const Scope& scope, Generation generation, OutcomeFinding finding);
  void settle(const Scope& scope, Case& one, event::Resolution to,
              std::optional<StoredResult> result, std::string evidence);
  void settled(const Scope& scope, Generation generation, event::Resolution to,
               const Result<Answer>& answer);
  void try_later(Case& one);
  void put_off(Case& one);
  /// The case of that generation, if it is still one.
  Case* find(const Scope& scope, Generation generation);

  Desk& desk_;
  Reconciler* reconciler_ = nullptr;
  std::string name_space_;
  Duration interval_{};
  std::uint64_t round_ = 0;
  std::size_t at_work_ = 0;
  std::unordered_map<Scope, Case, ScopeHash> cases_;
  Timer look_timer_, work_timer_;
  SmallCall* looking_ = nullptr;
  std::shared_ptr<char> alive_;  ///< Answers that come after `stop` find it gone.
};

}  // namespace einmal::detail
