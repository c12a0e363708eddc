#include "einmal/observe/fan_out.hpp"

namespace einmal {

void FanOut::reached(Point point, const Scope& scope, Generation generation) {
  for (Observer* observer : observers_) observer->reached(point, scope, generation);
}
void FanOut::begun(const BeginReport& report) {
  for (Observer* observer : observers_) observer->begun(report);
}
void FanOut::wait_started(const Scope& scope) {
  for (Observer* observer : observers_) observer->wait_started(scope);
}
void FanOut::finished(const FinishReport& report) {
  for (Observer* observer : observers_) observer->finished(report);
}
void FanOut::renewed(const Scope& scope, Generation generation, Renewal renewal) {
  for (Observer* observer : observers_) observer->renewed(scope, generation, renewal);
}
void FanOut::ownership_lost(const Scope& scope, Generation generation) {
  for (Observer* observer : observers_) observer->ownership_lost(scope, generation);
}
void FanOut::late_result(const Scope& scope, Generation generation, bool contradicts) {
  for (Observer* observer : observers_) observer->late_result(scope, generation, contradicts);
}
void FanOut::reconciled(const Scope& scope, Generation generation, Reconciled what) {
  for (Observer* observer : observers_) observer->reconciled(scope, generation, what);
}
void FanOut::store_answered(StoreCall call, Duration took, std::optional<ErrorCode> error) {
  for (Observer* observer : observers_) observer->store_answered(call, took, error);
}
void FanOut::overdue(std::size_t became_uncertain) {
  for (Observer* observer : observers_) observer->overdue(became_uncertain);
}
void FanOut::swept(std::size_t removed, std::size_t stripped) {
  for (Observer* observer : observers_) observer->swept(removed, stripped);
}
void FanOut::measured(const answer::Stats& stats) {
  for (Observer* observer : observers_) observer->measured(stats);
}
void FanOut::alarm(Alarm alarm, std::string_view detail) {
  for (Observer* observer : observers_) observer->alarm(alarm, detail);
}

}  // namespace einmal
