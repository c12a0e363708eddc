#include "einmal/sqlite/intake.hpp"

#include <chrono>
#include <utility>

namespace einmal::sqlite {

void CommandQueue::push(Command& command) {
  command.next_in_batch = nullptr;
  (last_ ? last_->next_in_batch : first_) = &command;
  last_ = &command;
}

void CommandQueue::take(std::vector<Command*>& into, std::size_t limit) {
  while (first_ && limit-- > 0) {
    into.push_back(first_);
    first_ = first_->next_in_batch;
  }
  if (!first_) last_ = nullptr;
}

namespace {

constexpr auto patience = std::chrono::milliseconds(1);

enum class Route { claim, write, read };

bool is_of_workflows(const Request& request) {
  return std::holds_alternative<request::StartWorkflow>(request) ||
         std::holds_alternative<request::PickWorkflows>(request) ||
         std::holds_alternative<request::AdvanceWorkflow>(request) ||
         std::holds_alternative<request::ReadWorkflow>(request) ||
         std::holds_alternative<request::ResumeWorkflow>(request) ||
         std::holds_alternative<request::CountWorkflows>(request);
}

Route route_of(const Request& request) {
  if (const auto* transition = std::get_if<request::Transition>(&request)) {
    return std::holds_alternative<event::Claim>(transition->event) ? Route::claim : Route::write;
  }
  const bool writes = std::holds_alternative<request::Overdue>(request) ||
                      std::holds_alternative<request::Sweep>(request) ||
                      std::holds_alternative<request::AdvanceGenerations>(request) ||
                      std::holds_alternative<request::AcceptTime>(request) ||
                      is_of_workflows(request);
  return writes ? Route::write : Route::read;
}

}  // namespace

void Intake::submit(Command& command) {
  const Route route = route_of(command.request());
  bool wake_writer = false;
  bool wake_reader = false;
  {
    const std::lock_guard lock(mutex_);
    (route == Route::claim ? claims_ : route == Route::write ? writes_ : reads_).push(command);
    if (route != Route::read && writer_waits_) {
      writer_waits_ = false;
      wake_writer = true;
    } else if (reader_waits_ && route == Route::read) {
      reader_waits_ = false;
      wake_reader = true;
    } else if (route == Route::claim && writer_away_) {
      watch_claims();
    }
  }
  if (wake_writer) writer_wakes_.notify_one();
  if (wake_reader) reader_wakes_.notify_one();
}

void Intake::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  writer_wakes_.notify_one();
  reader_wakes_.notify_one();
}

void Intake::wait_for_writes(Work& work, std::size_t limit, std::optional<Duration> timeout) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] {
    return !claims_.empty() || !writes_.empty() || nudged_ || (stopping_ && reader_done_);
  };
  // Whoever wakes it takes the flag down; what it was woken for may be gone when it comes.
  const auto until = std::chrono::steady_clock::now() + timeout.value_or(Duration::zero());
  while (!ready()) {
    writer_waits_ = true;
    if (!timeout) {
      writer_wakes_.wait(lock);
    } else if (writer_wakes_.wait_until(lock, until) == std::cv_status::timeout) {
      break;
    }
  }
  writer_waits_ = false;
  nudged_ = false;
  writes_.take(work.others, limit);
  claims_.take(work.claims, limit - work.others.size());
  work.stopping = stopping_ && reader_done_ && work.others.empty() && work.claims.empty();
}

void Intake::writer_goes_away() {
  const std::lock_guard lock(mutex_);
  writer_away_ = true;
  away_since_ = std::chrono::steady_clock::now();
  if (!claims_.empty()) watch_claims();
}

// Under load the reader is woken once and then looks again by itself, which is cheaper than waking
// it for every claim.
void Intake::watch_claims() {
  watched_ = true;
  if (reader_waits_ && !reader_looks_again_) reader_wakes_.notify_one();
}

bool Intake::claims_wait_long() const {
  return writer_away_ && !claims_.empty() && !stopping_ &&
         std::chrono::steady_clock::now() - away_since_ >= patience;
}

void Intake::writer_is_back() {
  const std::lock_guard lock(mutex_);
  writer_away_ = false;
}

void Intake::wait_for_reads(Work& work, std::size_t limit, bool poll) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return !reads_.empty() || claims_wait_long() || stopping_; };
  while (!poll && !ready()) {
    reader_waits_ = true;
    reader_looks_again_ = std::exchange(watched_, false) || (writer_away_ && !claims_.empty());
    if (reader_looks_again_) {
      reader_wakes_.wait_for(lock, patience);
    } else {
      reader_wakes_.wait(lock);
    }
  }
  reader_waits_ = false;
  reader_looks_again_ = false;
  reads_.take(work.others, limit);
  if (claims_wait_long()) claims_.take(work.claims, limit);
  work.stopping = stopping_ && work.others.empty();
  if (work.stopping && !poll) {
    reader_done_ = true;
    writer_wakes_.notify_one();
  }
}

void Intake::forward(const std::vector<Command*>& claims) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    for (Command* claim : claims) writes_.push(*claim);
    wake = writer_waits_;
    if (wake) writer_waits_ = false;
  }
  if (wake) writer_wakes_.notify_one();
}

void Intake::wake_writer() {
  const std::lock_guard lock(mutex_);
  nudged_ = true;
  writer_wakes_.notify_one();
}

}  // namespace einmal::sqlite
