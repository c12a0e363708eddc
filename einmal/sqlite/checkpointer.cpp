#include "einmal/sqlite/checkpointer.hpp"

#include "einmal/sqlite/schema.hpp"

namespace einmal::sqlite {

using sqlite_file::Connection;

namespace {
constexpr int most_runs = 5;
constexpr std::size_t little = 1u << 20;
}  // namespace

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wakes_.wait(lock, [this] { return wanted_ || stopping_; });
    if (stopping_) break;
    // Near its limit the WAL is chased, and the file flushed, so that little is left for the writer
    // to copy when it starts the WAL again, since everybody waits for that.
    const bool near = copied_at_ >= how_.options.wal_limit_bytes;
    for (int run = 0; run < (near ? most_runs : 1) && !stopping_; ++run) {
      if (run > 0 && wal_bytes_ <= copied_at_ + little) break;
      if (run > 0) copied_at_ = wal_bytes_;
      lock.unlock();
      checkpoint(near);
      lock.lock();
    }
    wanted_ = false;
    last_run_is_near_ = near;
  }
  lock.unlock();
  drop_file();
}

void Checkpointer::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  wakes_.notify_one();
}

void Checkpointer::wal_has(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  wal_bytes_ = bytes;
  if (bytes < copied_at_) copied_at_ = 0;  // it has started from its beginning
  if (wanted_ || bytes < copied_at_ + how_.options.checkpoint_bytes) return;
  copied_at_ = bytes;
  wanted_ = true;
  wakes_.notify_one();
}

bool Checkpointer::restart_is_due(std::size_t wal_bytes) const {
  const std::lock_guard lock(mutex_);
  if (wal_bytes < how_.options.wal_limit_bytes) return false;
  const bool far_over = wal_bytes >= copied_at_ + how_.options.wal_limit_bytes;
  return last_run_is_near_ || far_over;
}

void Checkpointer::restart_tried(std::size_t wal_bytes) {
  const std::lock_guard lock(mutex_);
  last_run_is_near_ = false;
  copied_at_ = wal_bytes;  // blocked by a reader: the next try is a whole step later
}

void Checkpointer::drop_file() {
  const std::lock_guard lock(file_mutex_);
  connection_.reset();
}

// A failure here costs nothing but a longer WAL; the writer meets the same disk and reports it.
void Checkpointer::checkpoint(bool near) {
  const std::lock_guard lock(file_mutex_);
  if (!connection_) {
    sqlite_file::ConnectionOptions options;
    options.path = how_.path;
    options.kind = store_file_kind();
    options.create = false;
    options.cache_kib = 64;
    options.vfs = how_.options.vfs;
    auto opened = Connection::open(std::move(options), random_);
    if (!opened) return;
    connection_ = std::move(*opened);
  }
  static_cast<void>(connection_->checkpoint(Connection::CheckpointMode::passive));
  if (near) static_cast<void>(connection_->sync_database());
}

}  // namespace einmal::sqlite
