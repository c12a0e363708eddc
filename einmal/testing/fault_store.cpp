#include "einmal/testing/fault_store.hpp"

#include <utility>

namespace einmal::testing {

/// Carries a copy of the command to the inner store and its answer back.
class FaultStore::Relay final : public Command {
 public:
  using Answered = std::function<void(Result<Answer>)>;
  Relay(Request request, Answered answered)
      : Command(std::move(request)), answered_(std::move(answered)) {}

  void completed(Result<Answer> answer) noexcept override {
    const Answered answered = std::move(answered_);
    delete this;
    answered(std::move(answer));
  }

 private:
  Answered answered_;
};

FaultStore::~FaultStore() = default;

void FaultStore::inject(Fault fault, Matches matches, std::size_t times) {
  rules_.push_back({fault, std::move(matches), times});
}

void FaultStore::resume() {
  for (const auto& go_on : std::exchange(waiting_, {})) go_on();
}

std::size_t FaultStore::count(const Matches& matches) const {
  std::size_t sum = 0;
  for (const Request& request : seen_) sum += matches(request) ? 1 : 0;
  return sum;
}

void FaultStore::submit(Command& command) {
  seen_.push_back(command.request());
  for (auto rule = rules_.begin(); rule != rules_.end(); ++rule) {
    if (!rule->matches(command.request())) continue;
    const Fault fault = rule->fault;
    if (rule->times != forever && --rule->times == 0) rules_.erase(rule);
    switch (fault) {
      case Fault::refused:
        return command.completed(
            failure(ErrorCode::unavailable, "fault store: refused, as the test asked"));
      case Fault::doubt_undone:
        return command.completed(
            failure(ErrorCode::in_doubt, "fault store: in doubt, as the test asked"));
      case Fault::doubt_done:
        return pass_on(command, true);
      case Fault::stalled:
        waiting_.push_back([this, &command] { pass_on(command, false); });
        return;
      case Fault::stalled_after:
        inner_.submit(*new Relay(command.request(), [this, &command](Result<Answer> answer) {
          waiting_.push_back([&command, answer = std::move(answer)]() mutable {
            command.completed(std::move(answer));
          });
        }));
        return;
    }
  }
  pass_on(command, false);
}

void FaultStore::pass_on(Command& command, bool answer_in_doubt) {
  inner_.submit(*new Relay(command.request(), [&command, answer_in_doubt](Result<Answer> answer) {
    if (answer_in_doubt) {
      answer = failure(ErrorCode::in_doubt, "fault store: in doubt, as the test asked");
    }
    command.completed(std::move(answer));
  }));
}

}  // namespace einmal::testing
