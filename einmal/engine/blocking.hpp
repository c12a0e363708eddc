#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "einmal/engine/engine.hpp"

/// For programs without an event loop: a thread for the engine, and the engine's functions as
/// blocking ones. Creating these starts the thread; nothing else in this room starts one.

namespace einmal {

/// A scheduler on a thread of its own.
class SchedulerThread final : public Scheduler {
 public:
  /// Starts the thread. `clock` must outlive this.
  explicit SchedulerThread(const Clock& clock);
  /// Ends the thread after the task that runs; what has not run is dropped. Not on that thread.
  ~SchedulerThread() override;
  SchedulerThread(const SchedulerThread&) = delete;
  SchedulerThread& operator=(const SchedulerThread&) = delete;

  void post(Task task) override;
  Timer run_after(Duration delay, Task task) override;
  void cancel(Timer timer) override;

  /// Runs `task` on the thread and waits for its end. Not on that thread.
  void run(const Task& task);

 private:
  void loop();

  const Clock& clock_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::vector<Task> posted_;
  std::map<std::pair<BootTime, std::uint64_t>, Task> timers_;
  std::map<std::uint64_t, BootTime> times_;  ///< Of timer n.
  std::uint64_t timers_set_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

class BlockingEngine;

/// An attempt that the caller owns; see Execution. One thread at a time. Destroying it unfinished
/// marks the record uncertain. Once the engine is gone, nothing is confirmed any more and every end
/// is `Unrecorded`: destroying the engine gave the record back.
class OwnedAttempt {
 public:
  OwnedAttempt(OwnedAttempt&&) noexcept;
  OwnedAttempt& operator=(OwnedAttempt&&) noexcept;
  ~OwnedAttempt();

  const Scope& scope() const;
  const Record& record() const;
  /// Stop is requested when ownership is lost; callbacks run on the engine's thread, so they must
  /// not block and not use this.
  std::stop_token lost() const;
  /// Call it before the first byte goes to anybody else: whether this attempt still surely owns the
  /// key, after asking the store where time alone does not tell. False: send nothing.
  bool confirm();

  Finished settle(event::Final outcome, StoredResult result, bool declared = true);
  Finished release();
  Finished mark_uncertain(UncertainCause cause = UncertainCause::outcome_unknown,
                          std::optional<StoredResult> seen = std::nullopt);

 private:
  friend class BlockingEngine;
  struct Shared;
  explicit OwnedAttempt(std::unique_ptr<Shared> shared);
  Finished finish(const std::function<void(Execution&, std::function<void(Finished)>)>& how);
  std::unique_ptr<Shared> shared_;
};

using BlockingBegun =
    std::variant<OwnedAttempt, begun::Replay, begun::Mismatch, begun::InProgress, begun::Uncertain,
                 begun::Gone, begun::Released, begun::TooManyWaiters, begun::Incomparable,
                 begun::OverQuota, begun::Draining, begun::Unavailable>;

/// An engine and its thread. Thread-safe.
class BlockingEngine {
 public:
  /// Starts the thread. Everything must outlive this.
  BlockingEngine(Store& store, const Clock& clock, Random& random, Observer& observer,
                 EngineLimits limits = {});
  /// `Engine::stop`, then ends the thread (when the last OwnedAttempt is gone, too).
  ~BlockingEngine();

  /// `Engine::begin`; waits for the answer.
  BlockingBegun begin(BeginRequest request);

  /// Runs `task` with the engine on its thread and waits for its end.
  void with_engine(const std::function<void(Engine&)>& task);

 private:
  friend class OwnedAttempt;
  std::shared_ptr<SchedulerThread> scheduler_;  ///< Also of each OwnedAttempt.
  std::optional<Engine> engine_;                ///< On the scheduler's thread only.
};

}  // namespace einmal
