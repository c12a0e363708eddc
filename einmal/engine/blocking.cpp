#include "einmal/engine/blocking.hpp"

#include <algorithm>
#include <cassert>
#include <future>

namespace einmal {

SchedulerThread::SchedulerThread(const Clock& clock) : clock_(clock), thread_([this] { loop(); }) {}

SchedulerThread::~SchedulerThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void SchedulerThread::post(Task task) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(task));
  changed_.notify_one();
}

Scheduler::Timer SchedulerThread::run_after(Duration delay, Task task) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = ++timers_set_;
  const BootTime at = clock_.boot_now() + std::max(delay, Duration::zero());
  timers_.emplace(std::pair(at, number), std::move(task));
  times_.emplace(number, at);
  return static_cast<Timer>(number);
}

void SchedulerThread::cancel(Timer timer) {
  Task dropped;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  const auto time = times_.find(static_cast<std::uint64_t>(timer));
  if (time == times_.end()) return;
  const auto at = timers_.find({time->second, time->first});
  dropped = std::move(at->second);
  timers_.erase(at);
  times_.erase(time);
}

void SchedulerThread::run(const Task& task) {
  assert(std::this_thread::get_id() != thread_.get_id());
  std::promise<void> ran;
  post([&] {
    task();
    ran.set_value();
  });
  ran.get_future().wait();
}

void SchedulerThread::loop() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    std::vector<Task> ready = std::exchange(posted_, {});
    const BootTime now = clock_.boot_now();
    if (!timers_.empty() && timers_.begin()->first.first <= now) {
      ready.push_back(std::move(timers_.begin()->second));
      times_.erase(timers_.begin()->first.second);
      timers_.erase(timers_.begin());
    }
    if (!ready.empty()) {
      lock.unlock();
      for (Task& task : ready) task();
      ready.clear();
      lock.lock();
    } else if (timers_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, timers_.begin()->first.first - now);
    }
  }
}

/// Lives on the engine's thread; only `record`, `scope` and the stop source are touched elsewhere.
struct OwnedAttempt::Shared {
  std::shared_ptr<SchedulerThread> scheduler;
  std::unique_ptr<Execution> execution;
  Scope scope;
  Record record;
  std::stop_source lost;
};

OwnedAttempt::OwnedAttempt(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}
OwnedAttempt::OwnedAttempt(OwnedAttempt&&) noexcept = default;

OwnedAttempt& OwnedAttempt::operator=(OwnedAttempt&& other) noexcept {
  std::swap(shared_, other.shared_);
  return *this;
}

OwnedAttempt::~OwnedAttempt() {
  if (shared_) shared_->scheduler->run([this] { shared_->execution.reset(); });
}

const Scope& OwnedAttempt::scope() const { return shared_->scope; }
const Record& OwnedAttempt::record() const { return shared_->record; }
std::stop_token OwnedAttempt::lost() const { return shared_->lost.get_token(); }

namespace {

/// Waits for an answer that the engine's thread gives through `promise`. Nothing: it was dropped
/// unanswered, since the engine is gone.
template <class T>
std::optional<T> wait_for(std::future<T> answer) {
  try {
    return answer.get();
  } catch (const std::future_error&) {
    return std::nullopt;
  }
}

}  // namespace

bool OwnedAttempt::confirm() {
  auto confirmed = std::make_shared<std::promise<bool>>();
  auto answer = confirmed->get_future();
  shared_->scheduler->run([&] {
    Execution& execution = *shared_->execution;
    const auto promise = std::exchange(confirmed, nullptr);
    if (execution.may_send()) return promise->set_value(true);
    execution.reconfirm([promise](bool ok) { promise->set_value(ok); });
  });
  return wait_for(std::move(answer)).value_or(false);
}

Finished OwnedAttempt::finish(
    const std::function<void(Execution&, std::function<void(Finished)>)>& how) {
  auto finished = std::make_shared<std::promise<Finished>>();
  auto answer = finished->get_future();
  shared_->scheduler->run([&] {
    how(*shared_->execution, [promise = std::exchange(finished, nullptr)](Finished outcome) {
      promise->set_value(std::move(outcome));
    });
  });
  return wait_for(std::move(answer)).value_or(finished::Unrecorded{});
}

Finished OwnedAttempt::settle(event::Final outcome, StoredResult result, bool declared) {
  return finish([&](Execution& execution, std::function<void(Finished)> done) {
    execution.settle(outcome, std::move(result), declared, std::move(done));
  });
}

Finished OwnedAttempt::release() {
  return finish([](Execution& execution, std::function<void(Finished)> done) {
    execution.release(std::move(done));
  });
}

Finished OwnedAttempt::mark_uncertain(UncertainCause cause, std::optional<StoredResult> seen) {
  return finish([&](Execution& execution, std::function<void(Finished)> done) {
    execution.mark_uncertain(cause, std::move(seen), std::move(done));
  });
}

BlockingEngine::BlockingEngine(Store& store, const Clock& clock, Random& random, Observer& observer,
                               EngineLimits limits)
    : scheduler_(std::make_shared<SchedulerThread>(clock)) {
  scheduler_->run([&] { engine_.emplace(store, *scheduler_, clock, random, observer, limits); });
}

BlockingEngine::~BlockingEngine() {
  std::promise<void> stopped;
  scheduler_->post([&] { engine_->stop([&] { stopped.set_value(); }); });
  stopped.get_future().wait();
  scheduler_->run([&] { engine_.reset(); });
}

BlockingBegun BlockingEngine::begin(BeginRequest request) {
  std::promise<Begun> answered;
  std::stop_source lost;
  scheduler_->run([&] {
    engine_->begin(std::move(request), [&, lost](Begun begun) {
      if (auto* execute = std::get_if<begun::Execute>(&begun)) {
        execute->execution->on_lost([lost]() mutable { lost.request_stop(); });
      }
      answered.set_value(std::move(begun));
    });
  });
  Begun begun = answered.get_future().get();
  return std::visit(
      [&](auto& answer) -> BlockingBegun {
        if constexpr (std::is_same_v<std::decay_t<decltype(answer)>, begun::Execute>) {
          Execution& execution = *answer.execution;
          // The claim's record and scope do not change, so this thread may read them.
          return OwnedAttempt(std::unique_ptr<OwnedAttempt::Shared>(
              new OwnedAttempt::Shared{scheduler_, std::move(answer.execution), execution.scope(),
                                       execution.record(), lost}));
        } else {
          return std::move(answer);
        }
      },
      begun);
}

void BlockingEngine::with_engine(const std::function<void(Engine&)>& task) {
  scheduler_->run([&] { task(*engine_); });
}

}  // namespace einmal
