#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "einmal/sqlite/store_file.hpp"

namespace einmal::sqlite {

/// Copies the WAL to the database file beside the running writes, so that the writer never does it
/// between two batches but for the rest that came in meanwhile. The WAL can start from its
/// beginning only when nobody writes: that last step is the writer's, when `restart_is_due`.
class Checkpointer {
 public:
  Checkpointer(OpenFile how, Random& random) : how_(std::move(how)), random_(random) {}

  void run();
  void stop();

  /// The writer's, after a commit: the size of the WAL.
  void wal_has(std::size_t bytes);
  /// The writer's: whether to start the WAL from its beginning now.
  bool restart_is_due(std::size_t wal_bytes) const;
  /// The writer's: the WAL that it tried to start from its beginning has this size now.
  void restart_tried(std::size_t wal_bytes);

  /// Closes the connection; it is opened again when needed.
  void drop_file();

 private:
  void checkpoint(bool near);

  const OpenFile how_;
  Random& random_;
  mutable std::mutex mutex_;
  std::condition_variable wakes_;
  bool wanted_ = false;
  bool stopping_ = false;
  std::size_t wal_bytes_ = 0;      ///< As the writer said last.
  std::size_t copied_at_ = 0;      ///< WAL size at the begin of the last run.
  bool last_run_is_near_ = false;  ///< A run has ended with the WAL over its limit.

  std::mutex file_mutex_;
  std::unique_ptr<sqlite_file::Connection> connection_;
};

}  // namespace einmal::sqlite
