#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "einmal/base/clock.hpp"
#include "einmal/engine/scheduler.hpp"
#include "einmal/gateway/async.hpp"

namespace boost::asio {
class io_context;
}

namespace einmal::gateway {

class Loop;

/// A moment that somebody waits for, coarsely: the loop looks at all of them once a tick and calls
/// `expired` on those that are over. Setting one costs two stores, so that each read and write may
/// have one. Loop's thread only.
class Deadline {
 public:
  explicit Deadline(Loop& loop);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  inline void set_after(Duration delay);
  void clear() { at_ = BootTime::max(); }
  bool is_set() const { return at_ != BootTime::max(); }

 protected:
  virtual ~Deadline();
  Loop& loop() const { return loop_; }

 private:
  friend class Loop;
  /// The deadline was cleared before the call. May destroy other deadlines, and this one.
  virtual void expired() = 0;

  Loop& loop_;
  BootTime at_ = BootTime::max();
  Deadline* previous_ = nullptr;
  Deadline* next_ = nullptr;
};

/// The one thread everything of a gateway runs on: an io_context, the engine's scheduler on it, and
/// the coroutines at the roots.
class Loop final : public Scheduler, public Turns {
 public:
  explicit Loop(const Clock& clock);
  ~Loop() override;

  void post(Scheduler::Task task) override;
  Timer run_after(Duration delay, Scheduler::Task task) override;
  void cancel(Timer timer) override;
  void resume_soon(std::coroutine_handle<> frame) override;

  /// Serves until `stop`.
  void run();
  /// Thread-safe.
  void stop();

  /// Runs `body` as a root of its own. An exception that leaves it ends that root only.
  void spawn(Async<void> body);
  /// Destroys the roots that are left, and with them every coroutine. After `run` has returned for
  /// good, and before what they use goes.
  void destroy_roots();

  /// Boot time, at most one tick old.
  BootTime now() const { return now_; }
  const Clock& clock() const { return clock_; }
  boost::asio::io_context& io();

  /// How often deadlines are looked at.
  static constexpr Duration tick = std::chrono::milliseconds(50);

 private:
  friend class Deadline;
  class Impl;

  const Clock& clock_;
  BootTime now_;
  BootTime earliest_ = BootTime::max();  ///< No deadline is before this.
  std::unique_ptr<Impl> impl_;
};

inline void Deadline::set_after(Duration delay) {
  at_ = loop_.now_ + delay + Loop::tick;
  if (at_ < loop_.earliest_) loop_.earliest_ = at_;
}

}  // namespace einmal::gateway
