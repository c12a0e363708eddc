#pragma once

#include <initializer_list>
#include <vector>

#include "einmal/engine/observer.hpp"

namespace einmal {

/// Tells several observers, in the order given. They must outlive it.
class FanOut final : public Observer {
 public:
  FanOut(std::initializer_list<Observer*> observers) : observers_(observers) {}

  void reached(Point point, const Scope& scope, Generation generation) override;
  void begun(const BeginReport& report) override;
  void wait_started(const Scope& scope) override;
  void finished(const FinishReport& report) override;
  void renewed(const Scope& scope, Generation generation, Renewal renewal) override;
  void ownership_lost(const Scope& scope, Generation generation) override;
  void late_result(const Scope& scope, Generation generation, bool contradicts) override;
  void reconciled(const Scope& scope, Generation generation, Reconciled what) override;
  void store_answered(StoreCall call, Duration took, std::optional<ErrorCode> error) override;
  void overdue(std::size_t became_uncertain) override;
  void swept(std::size_t removed, std::size_t stripped) override;
  void measured(const answer::Stats& stats) override;
  void alarm(Alarm alarm, std::string_view detail) override;

 private:
  std::vector<Observer*> observers_;
};

}  // namespace einmal
