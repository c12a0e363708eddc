#include "einmal/gateway/loop.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

namespace einmal::gateway {

namespace asio = boost::asio;

namespace {

/// A coroutine that owns itself and is known to its loop, which destroys it at teardown.
struct Root {
  struct promise_type {
    promise_type(std::set<void*>& roots, Async<void>&) : roots_(roots) {
      roots_.insert(handle().address());
    }
    ~promise_type() { roots_.erase(handle().address()); }
    Root get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() noexcept {}  // Ends this root; its objects are unwound.

    std::coroutine_handle<promise_type> handle() {
      return std::coroutine_handle<promise_type>::from_promise(*this);
    }
    std::set<void*>& roots_;
  };
};

Root run_root(std::set<void*>& /*roots*/, Async<void> body) { co_await body; }

}  // namespace

class Loop::Impl {
 public:
  explicit Impl(Loop& loop) : loop_(loop), ticker_(io_), timer_(io_) {}

  // --- Tasks from other threads: one wake-up of the io_context for all that come meanwhile.

  void post(Scheduler::Task task) {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = incoming_.empty();
      incoming_.push_back(std::move(task));
    }
    if (first) asio::post(io_, [this] { run_incoming(); });
  }

  void run_incoming() {
    {
      const std::lock_guard lock(mutex_);
      running_.swap(incoming_);
    }
    const Dispatch dispatch(*this);
    for (auto& task : running_) task();
    running_.clear();
  }

  // --- Coroutines whose turn comes as soon as what is called now has returned.

  void resume_soon(std::coroutine_handle<> frame) {
    ready_.push_back(frame);
    if (dispatching_ || ready_posted_) return;
    ready_posted_ = true;
    asio::post(io_, [this] {
      ready_posted_ = false;
      const Dispatch dispatch(*this);
    });
  }

  void run_ready() {
    for (std::size_t next = 0; next < ready_.size(); ++next) ready_[next].resume();
    ready_.clear();
  }

  /// While tasks, timers and deadlines are called: what they make ready runs right after them.
  struct Dispatch {
    explicit Dispatch(Impl& loop) : loop_(loop) { loop_.dispatching_ = true; }
    ~Dispatch() {
      loop_.run_ready();
      loop_.dispatching_ = false;
    }
    Impl& loop_;
  };

  // --- Timers of the engine.

  Timer run_after(Duration delay, Scheduler::Task task) {
    const auto id = ++last_timer_;
    const auto at = loop_.clock_.boot_now() + delay;
    timers_.emplace(id, by_time_.emplace(at, Entry{id, std::move(task)}));
    if (at < armed_for_) arm(at);
    return static_cast<Timer>(id);
  }

  void cancel(Timer timer) {
    const auto found = timers_.find(static_cast<std::uint64_t>(timer));
    if (found == timers_.end()) return;
    by_time_.erase(found->second);
    timers_.erase(found);
  }

  void arm(BootTime at) {
    armed_for_ = at;
    const auto left = std::max(at - loop_.clock_.boot_now(), Duration{0});
    timer_.expires_after(left);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) run_due();
    });
  }

  void run_due() {
    const Dispatch dispatch(*this);
    armed_for_ = BootTime::max();
    const auto now = loop_.clock_.boot_now();
    while (!by_time_.empty() && by_time_.begin()->first <= now) {
      auto due = std::move(by_time_.begin()->second);
      by_time_.erase(by_time_.begin());
      timers_.erase(due.id);
      due.task();
    }
    if (!by_time_.empty() && by_time_.begin()->first < armed_for_) arm(by_time_.begin()->first);
  }

  // --- Deadlines.

  void start_ticking() {
    ticker_.expires_after(tick);
    ticker_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      loop_.now_ = loop_.clock_.boot_now();
      look_at_deadlines();
      start_ticking();
    });
  }

  void look_at_deadlines() {
    if (loop_.now_ < loop_.earliest_) return;
    const Dispatch dispatch(*this);
    loop_.earliest_ = BootTime::max();  // What is set while they are called lowers it again.
    for (Deadline* deadline = first_; deadline != nullptr;) {
      cursor_ = deadline->next_;
      if (deadline->at_ <= loop_.now_) {
        deadline->clear();
        deadline->expired();
      } else if (deadline->at_ < loop_.earliest_) {
        loop_.earliest_ = deadline->at_;
      }
      deadline = cursor_;
    }
    cursor_ = nullptr;
  }

  void link(Deadline& deadline) {
    deadline.next_ = first_;
    if (first_ != nullptr) first_->previous_ = &deadline;
    first_ = &deadline;
  }

  void unlink(Deadline& deadline) {
    if (cursor_ == &deadline) cursor_ = deadline.next_;
    if (deadline.previous_ != nullptr) deadline.previous_->next_ = deadline.next_;
    if (deadline.next_ != nullptr) deadline.next_->previous_ = deadline.previous_;
    if (first_ == &deadline) first_ = deadline.next_;
  }

  struct Entry {
    std::uint64_t id;
    Scheduler::Task task;
  };

  Loop& loop_;
  asio::io_context io_{1};
  asio::steady_timer ticker_, timer_;

  std::mutex mutex_;
  std::vector<Scheduler::Task> incoming_, running_;

  std::multimap<BootTime, Entry> by_time_;
  std::unordered_map<std::uint64_t, std::multimap<BootTime, Entry>::iterator> timers_;
  std::uint64_t last_timer_ = 0;
  BootTime armed_for_ = BootTime::max();

  Deadline* first_ = nullptr;
  Deadline* cursor_ = nullptr;  ///< The next that look_at_deadlines will see.

  std::vector<std::coroutine_handle<>> ready_;
  bool dispatching_ = false, ready_posted_ = false;

  std::set<void*> roots_;
};

Loop::Loop(const Clock& clock)
    : clock_(clock), now_(clock.boot_now()), impl_(std::make_unique<Impl>(*this)) {}

Loop::~Loop() { destroy_roots(); }

void Loop::destroy_roots() {
  while (!impl_->roots_.empty()) {
    std::coroutine_handle<>::from_address(*impl_->roots_.begin()).destroy();
  }
}

void Loop::post(Scheduler::Task task) { impl_->post(std::move(task)); }
Scheduler::Timer Loop::run_after(Duration delay, Scheduler::Task task) {
  return impl_->run_after(delay, std::move(task));
}
void Loop::cancel(Timer timer) { impl_->cancel(timer); }
void Loop::resume_soon(std::coroutine_handle<> frame) { impl_->resume_soon(frame); }

void Loop::run() {
  const auto work = asio::make_work_guard(impl_->io_);
  now_ = clock_.boot_now();
  impl_->start_ticking();
  impl_->io_.run();
}

void Loop::stop() { impl_->io_.stop(); }

void Loop::spawn(Async<void> body) { run_root(impl_->roots_, std::move(body)); }

asio::io_context& Loop::io() { return impl_->io_; }

Deadline::Deadline(Loop& loop) : loop_(loop) { loop_.impl_->link(*this); }
Deadline::~Deadline() { loop_.impl_->unlink(*this); }

}  // namespace einmal::gateway
