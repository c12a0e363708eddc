#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "einmal/store/store.hpp"

namespace einmal::sqlite {

/// Commands in the order of their arrival, linked through themselves.
class CommandQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  void push(Command& command);
  /// Moves up to `limit` commands to the end of `into`.
  void take(std::vector<Command*>& into, std::size_t limit);

 private:
  Command* first_ = nullptr;
  Command* last_ = nullptr;
};

/// Where commands wait for the two threads of the store.
///
/// A claim goes to the writer. When that one has been away (waiting for another process's lock or
/// for a flush) for a millisecond, the reader looks claims up, answers those that change nothing
/// and forwards the others. So a replay waits for nobody's slow flush, and with quick ones there is
/// one hop and one look-up.
class Intake {
 public:
  void submit(Command& command);
  /// No command comes any more: both threads empty their queues and leave.
  void stop();

  struct Work {
    std::vector<Command*> claims;  ///< To be looked up first.
    std::vector<Command*> others;  ///< The writer's: writes. The reader's: reads.
    bool stopping = false;         ///< Nothing is left and nothing will come.
  };
  /// The writer's: waits for work, at most until `timeout` if one is given.
  void wait_for_writes(Work& work, std::size_t limit, std::optional<Duration> timeout);
  void writer_goes_away();
  void writer_is_back();

  /// The reader's. With `poll`, returns at once.
  void wait_for_reads(Work& work, std::size_t limit, bool poll);
  /// Claims that need a write.
  void forward(const std::vector<Command*>& claims);

  /// Makes the writer return from its wait.
  void wake_writer();

 private:
  void watch_claims();
  bool claims_wait_long() const;

  std::mutex mutex_;
  std::condition_variable writer_wakes_, reader_wakes_;
  CommandQueue claims_, writes_, reads_;
  bool writer_waits_ = false;
  bool reader_waits_ = false;
  bool reader_looks_again_ = false;  ///< Its wait ends by itself.
  bool watched_ = false;             ///< Claims came while the writer was away: look again soon.
  bool writer_away_ = false;
  std::chrono::steady_clock::time_point away_since_;
  bool nudged_ = false;
  bool stopping_ = false;
  bool reader_done_ = false;
};

}  // namespace einmal::sqlite
