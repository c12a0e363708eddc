#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

namespace einmal::gateway {

/// A coroutine with one result for one awaiting parent. Lazy: it starts when it is awaited, or by
/// `start` to run beside its owner and be awaited later. One thread.
///
/// Destroying an unfinished Async destroys its frame and those below it. Only teardown does that,
/// after the last turn of the event loop: operations under way still point into the frames.
///
/// Asio's awaitable is not used: the engine's callbacks resume these frames directly, and neither
/// an executor nor a completion handler is copied for each call.
template <class T = void>
class Async;

namespace detail {

struct AsyncPromiseBase {
  std::coroutine_handle<> parent;
  std::exception_ptr error;
  bool starting = false;  ///< The parent's await_suspend is still below us on the stack.

  std::suspend_always initial_suspend() noexcept { return {}; }

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> self) noexcept {
      AsyncPromiseBase& promise = self.promise();
      // A child that never suspended lets its parent go on without a resume, so that loops over
      // children that finish at once do not deepen the stack.
      if (promise.starting || !promise.parent) return;
      promise.parent.resume();
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { error = std::current_exception(); }
};

template <class T>
struct AsyncPromise : AsyncPromiseBase {
  std::optional<T> value;
  Async<T> get_return_object();
  void return_value(T v) { value.emplace(std::move(v)); }
  T take() {
    if (error) std::rethrow_exception(error);
    return std::move(*value);
  }
};

template <>
struct AsyncPromise<void> : AsyncPromiseBase {
  Async<void> get_return_object();
  void return_void() {}
  void take() {
    if (error) std::rethrow_exception(error);
  }
};

}  // namespace detail

template <class T>
class [[nodiscard]] Async {
 public:
  using promise_type = detail::AsyncPromise<T>;

  Async() = default;
  explicit Async(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  Async(Async&& other) noexcept
      : frame_(std::exchange(other.frame_, nullptr)), started_(other.started_) {}
  Async& operator=(Async&& other) noexcept {
    if (this != &other) {
      if (frame_) frame_.destroy();
      frame_ = std::exchange(other.frame_, nullptr);
      started_ = other.started_;
    }
    return *this;
  }
  ~Async() {
    if (frame_) frame_.destroy();
  }

  /// Runs until it first suspends; the owner awaits it later.
  void start() {
    started_ = true;
    frame_.resume();
  }
  bool done() const { return started_ && frame_.done(); }

  bool await_ready() const noexcept { return done(); }
  bool await_suspend(std::coroutine_handle<> parent) {
    auto& promise = frame_.promise();
    promise.parent = parent;
    if (started_) return true;
    started_ = true;
    promise.starting = true;
    frame_.resume();
    promise.starting = false;
    return !frame_.done();
  }
  T await_resume() { return frame_.promise().take(); }

 private:
  std::coroutine_handle<promise_type> frame_;
  bool started_ = false;
};

template <class T>
Async<T> detail::AsyncPromise<T>::get_return_object() {
  return Async<T>(std::coroutine_handle<AsyncPromise>::from_promise(*this));
}
inline Async<void> detail::AsyncPromise<void>::get_return_object() {
  return Async<void>(std::coroutine_handle<AsyncPromise>::from_promise(*this));
}

/// Where coroutines wait for their turn to go on.
class Turns {
 public:
  /// `frame` goes on on this thread, soon, never inside this call.
  virtual void resume_soon(std::coroutine_handle<> frame) = 0;

 protected:
  virtual ~Turns() = default;
};

/// A value that a callback delivers to one awaiting coroutine, which goes on soon, not inside
/// `set`: the callback's caller may be in the middle of something. Lives in the awaiting frame; the
/// callback keeps a pointer to it.
template <class T>
class Delivery {
 public:
  explicit Delivery(Turns& turns) : turns_(turns) {}
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  void set(T value) {
    value_.emplace(std::move(value));
    if (waiter_) turns_.resume_soon(std::exchange(waiter_, nullptr));
  }
  bool is_set() const { return value_.has_value(); }

  bool await_ready() const noexcept { return value_.has_value(); }
  void await_suspend(std::coroutine_handle<> waiter) noexcept { waiter_ = waiter; }
  T await_resume() { return std::move(*value_); }

 private:
  Turns& turns_;
  std::optional<T> value_;
  std::coroutine_handle<> waiter_;
};

}  // namespace einmal::gateway
