#include "einmal/engine/mailbox.hpp"

#include <cassert>
#include <utility>

namespace einmal::detail {

void Call::submit() {
  assert(!at_store_);
  at_store_ = true;
  sent_ = mailbox_->clock_.boot_now();
  mailbox_->store_.submit(*this);
}

void Call::completed(Result<Answer> answer) noexcept {
  // Keeps the mailbox beyond `leave`: by its end the engine's thread may have deleted this call.
  const auto mailbox = mailbox_;
  answer_.emplace(std::move(answer));
  if (!mailbox->leave(*this)) delete this;
}

bool Mailbox::leave(Call& call) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  call.next_in_batch = nullptr;
  if (last_) {
    last_->next_in_batch = &call;
  } else {
    first_ = &call;
  }
  last_ = &call;
  wake();
  return true;
}

void Mailbox::ring() {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  ringing_ = true;
  wake();
}

void Mailbox::wake() {
  if (std::exchange(awake_, true)) return;
  scheduler_.post([self = shared_from_this()] { self->empty(); });
}

void Mailbox::empty() {
  const auto self = shared_from_this();
  Call* call = nullptr;
  bool rung = false;
  {
    const std::lock_guard lock(mutex_);
    awake_ = false;
    if (closed_) return;
    call = std::exchange(first_, nullptr);
    last_ = nullptr;
    rung = std::exchange(ringing_, false);
  }
  const BootTime now = clock_.boot_now();
  while (call) {
    auto* next = static_cast<Call*>(std::exchange(call->next_in_batch, nullptr));
    call->at_store_ = false;
    Result<Answer> answer = std::move(*call->answer_);
    call->answer_.reset();
    observer_.store_answered(call->kind_, now - call->sent_,
                             answer ? std::nullopt : std::optional<ErrorCode>(answer.error().code));
    call->answered(std::move(answer));
    call = next;
  }
  if (rung && rung_) rung_();
}

void Mailbox::close() {
  // First unlinked, then closed: once closed, a store's thread may delete what it answers.
  rung_ = nullptr;
  while (SmallCall* small = small_calls_.front()) {
    small->forget();
    List<SmallCall, SmallCall>::remove(*small);
  }
  Call* call = nullptr;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    call = std::exchange(first_, nullptr);
    last_ = nullptr;
  }
  while (call) {
    auto* next = static_cast<Call*>(std::exchange(call->next_in_batch, nullptr));
    call->at_store_ = false;
    call->engine_gone();
    call = next;
  }
}

SmallCall* SmallCall::send(const std::shared_ptr<Mailbox>& mailbox, StoreCall kind, Request request,
                           Handler handler) {
  auto* call = new SmallCall(mailbox, kind, std::move(request), std::move(handler));
  mailbox->small_calls_.push_back(*call);
  call->submit();
  return call;
}

void SmallCall::answered(Result<Answer> answer) {
  // Gone before the handler runs, so that the handler may end what would otherwise forget it.
  const Handler handler = std::move(handler_);
  delete this;
  if (handler) handler(std::move(answer));
}

}  // namespace einmal::detail
