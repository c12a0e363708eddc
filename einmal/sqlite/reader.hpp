#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "einmal/sqlite/intake.hpp"
#include "einmal/sqlite/scans.hpp"
#include "einmal/sqlite/store_clock.hpp"
#include "einmal/sqlite/store_file.hpp"

namespace einmal::sqlite {

/// The thread that answers what needs no write: look-ups, replays while the writer is away, lists
/// and counts in bounded pages.
class Reader {
 public:
  Reader(OpenFile how, const ScopeDigests& digests, StoreClock& clock, Random& random,
         Intake& intake);

  /// Until the intake stops.
  void run();

  /// Closes the connection; it is opened again when needed. Any thread.
  void drop_file();

 private:
  void round(Intake::Work& work);
  Result<void> ensure_open();
  void look_up(const std::vector<Command*>& claims);
  Result<Answer> answer(Request& request);
  Result<Answer> on(const request::ReadScope& read);
  Result<Answer> on(const request::ReadOperation& read);
  Result<Answer> on(const request::ReadProfile& read);
  Result<Answer> on(const request::ReadAudit& read);
  void begin_scan_or_answer(Command& command);
  void slice_scan();

  const OpenFile how_;
  const ScopeDigests& digests_;
  StoreClock& clock_;
  Random& random_;
  Intake& intake_;

  std::mutex file_mutex_;
  std::unique_ptr<StoreFile> file_;
  Now now_{};
  bool paused_ = false;
  std::vector<Command*> forwarded_;
  struct Running {
    Command* command;
    std::unique_ptr<Scan> scan;
  };
  std::deque<Running> scans_;  ///< Each gets a slice in its turn.
};

}  // namespace einmal::sqlite
