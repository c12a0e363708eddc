#include "einmal/store/store.hpp"

#include <condition_variable>
#include <mutex>

namespace einmal {

namespace {

class BlockingCommand final : public Command {
 public:
  using Command::Command;

  void completed(Result<Answer> answer) noexcept override {
    // Notify under the lock: the waiter destroys this object as soon as it sees the answer.
    const std::lock_guard lock(mutex_);
    answer_.emplace(std::move(answer));
    arrived_.notify_one();
  }

  Result<Answer> wait() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return answer_.has_value(); });
    return std::move(*answer_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::optional<Result<Answer>> answer_;
};

}  // namespace

Result<Answer> ask(Store& store, Request request) {
  BlockingCommand command(std::move(request));
  store.submit(command);
  return command.wait();
}

Result<Decision> ask_transition(Store& store, request::Transition transition) {
  auto answered = ask(store, std::move(transition));
  if (!answered) return pass_on(answered);
  auto* decision = std::get_if<Decision>(&*answered);
  if (!decision)
    return failure(ErrorCode::internal, "store: a transition was not answered by a decision");
  return std::move(*decision);
}

}  // namespace einmal
