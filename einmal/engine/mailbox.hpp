#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "einmal/engine/linked_list.hpp"
#include "einmal/engine/observer.hpp"
#include "einmal/engine/scheduler.hpp"
#include "einmal/store/store.hpp"

namespace einmal::detail {

class Mailbox;
class SmallCall;

/// A command of an engine: the store's answer is handed over to the engine's thread.
///
/// It lives on the heap. While it is at the store nobody may delete it; if its engine goes away in
/// the meantime it deletes itself when the store answers.
class Call : public Command {
 public:
  Call(std::shared_ptr<Mailbox> mailbox, StoreCall kind, Request request)
      : Command(std::move(request)), mailbox_(std::move(mailbox)), kind_(kind) {}

  /// Hands it to the store. Engine's thread, not while it is at the store.
  void submit();
  bool at_store() const { return at_store_; }
  BootTime sent() const { return sent_; }  ///< When it was last submitted.

 protected:
  void set_kind(StoreCall kind) { kind_ = kind; }

 private:
  friend class Mailbox;

  /// On the engine's thread; may delete this, may submit it again.
  virtual void answered(Result<Answer> answer) = 0;
  /// The engine is being destroyed and the answer will not be looked at.
  virtual void engine_gone() {}

  void completed(Result<Answer> answer) noexcept final;

  std::shared_ptr<Mailbox> mailbox_;
  StoreCall kind_;
  bool at_store_ = false;
  BootTime sent_{};
  std::optional<Result<Answer>> answer_;
};

/// Where the store's threads leave answers for the engine's thread: an intrusive list and one
/// wake-up for all that came since the last look.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  Mailbox(Store& store, Scheduler& scheduler, const Clock& clock, Observer& observer)
      : store_(store), scheduler_(scheduler), clock_(clock), observer_(observer) {}

  /// Runs `task` on the engine's thread with the next look, if one is set and `ring` was called.
  /// Rings before that look are one.
  void on_ring(std::function<void()> task) { rung_ = std::move(task); }
  /// Any thread.
  void ring();

  /// From now on answers are dropped. Engine's thread; nothing of the engine runs afterwards.
  void close();

 private:
  friend class Call;
  friend class SmallCall;

  bool leave(Call& call);
  void wake();  ///< With the lock held.
  void empty();

  Store& store_;
  Scheduler& scheduler_;
  const Clock& clock_;
  Observer& observer_;
  std::function<void()> rung_;
  List<SmallCall, SmallCall> small_calls_;  ///< At the store, or answered and not looked at.

  std::mutex mutex_;
  Call* first_ = nullptr;
  Call* last_ = nullptr;
  bool awake_ = false;
  bool ringing_ = false;
  bool closed_ = false;
};

/// A call that is only answered once, for the roads where an allocation does not matter. It owns
/// itself from `send` on.
class SmallCall final : public Call, public Hook<SmallCall> {
 public:
  using Handler = std::function<void(Result<Answer>)>;

  /// `handler` runs on the engine's thread unless `forget` was called or the engine is gone.
  static SmallCall* send(const std::shared_ptr<Mailbox>& mailbox, StoreCall kind, Request request,
                         Handler handler);
  /// The answer interests nobody any more. Only before the handler ran.
  void forget() { handler_ = nullptr; }

 private:
  SmallCall(const std::shared_ptr<Mailbox>& mailbox, StoreCall kind, Request request,
            Handler handler)
      : Call(mailbox, kind, std::move(request)), handler_(std::move(handler)) {}

  void answered(Result<Answer> answer) override;
  void engine_gone() override { delete this; }

  Handler handler_;
};

}  // namespace einmal::detail
