#include "einmal/testing/fault_vfs.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace einmal::testing {

namespace {

constexpr std::size_t sector = 512;

/// A write or truncation that no sync has made durable yet, and what was there before.
struct Pending {
  std::int64_t offset = 0;
  std::string after;   ///< Empty for a truncation to `offset`.
  std::string before;  ///< Shorter than `after` where the file ended.
  std::int64_t size_before = 0;
};

/// The content of a file outside of SQLite.
class RawFile {
 public:
  explicit RawFile(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {}
  ~RawFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  void write(std::int64_t offset, std::string_view bytes) const {
    if (::pwrite(fd_, bytes.data(), bytes.size(), offset) < 0) std::abort();
  }
  void resize(std::int64_t size) const {
    if (::ftruncate(fd_, size) != 0) std::abort();
  }

 private:
  int fd_;
};

void undo(const RawFile& file, const std::vector<Pending>& pending) {
  for (auto it = pending.rbegin(); it != pending.rend(); ++it) {
    file.write(it->offset, it->before);
    file.resize(it->size_before);
  }
}

void redo_some(const RawFile& file, const std::vector<Pending>& pending, Random& random) {
  for (const Pending& p : pending) {
    if (p.after.empty()) {
      if (random.below(2) == 0) file.resize(p.offset);
      continue;
    }
    for (std::size_t at = 0; at < p.after.size(); at += sector) {
      if (random.below(2) == 0) continue;
      file.write(p.offset + static_cast<std::int64_t>(at),
                 std::string_view(p.after).substr(at, sector));
    }
  }
}

}  // namespace

class FaultVfs::Impl {
 public:
  Impl() {
    static std::mutex names;
    static int count = 0;
    const std::lock_guard lock(names);
    name_ = "einmal-fault-" + std::to_string(++count);
    real_ = sqlite3_vfs_find(nullptr);
    vfs_ = *real_;
    vfs_.iVersion = 2;  // no system call overrides through us
    vfs_.szOsFile = static_cast<int>(sizeof(Shim)) + real_->szOsFile;
    vfs_.pNext = nullptr;
    vfs_.zName = name_.c_str();
    vfs_.pAppData = this;
    vfs_.xOpen = &open;
    vfs_.xDelete = &remove;
    vfs_.xAccess = [](sqlite3_vfs* v, const char* path, int flags, int* out) {
      return of(v).real_->xAccess(of(v).real_, path, flags, out);
    };
    vfs_.xFullPathname = [](sqlite3_vfs* v, const char* path, int size, char* out) {
      return of(v).real_->xFullPathname(of(v).real_, path, size, out);
    };
    sqlite3_vfs_register(&vfs_, 0);
  }
  ~Impl() { sqlite3_vfs_unregister(&vfs_); }

  const std::string& name() const { return name_; }

  void arm(const Fault& fault) {
    const std::lock_guard lock(mutex_);
    fault_ = fault;
    seen_ = 0;
    fired_ = false;
  }
  void disarm() {
    const std::lock_guard lock(mutex_);
    fault_.reset();
    changed_.notify_all();
  }
  bool fired() const {
    const std::lock_guard lock(mutex_);
    return fired_;
  }
  bool wait_until_stalled(const std::function<bool()>& over) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::unique_lock lock(mutex_);
    while (stalled_ == 0 && !over() && std::chrono::steady_clock::now() < end) {
      changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    return stalled_ > 0;
  }
  void cut_power() {
    const std::lock_guard lock(mutex_);
    power_ = false;
    fault_.reset();
    changed_.notify_all();
  }
  void restore_power(Random* random) {
    const std::lock_guard lock(mutex_);
    for (auto& [path, pending] : pending_) {
      if (::access(path.c_str(), F_OK) != 0) continue;
      const RawFile file(path);
      undo(file, pending);
      if (random) redo_some(file, pending, *random);
    }
    for (const auto& [path, pending] : pending_) ::unlink((path + "-shm").c_str());
    pending_.clear();
    power_ = true;
  }

 private:
  /// What SQLite takes for the file; the real one lies behind it in the same memory.
  struct Shim {
    sqlite3_file base;
    Impl* impl;
    std::string* path;  ///< Null for temporary files: they survive nothing anyway.
    File kind;
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  };
  static Impl& of(sqlite3_vfs* vfs) { return *static_cast<Impl*>(vfs->pAppData); }
  static Shim& shim(sqlite3_file* file) { return *reinterpret_cast<Shim*>(file); }

  /// What happens to this operation: nothing, or an error kind.
  std::optional<Kind> judge(Operation operation, File file) {
    std::unique_lock lock(mutex_);
    if (!power_) return Kind::io_error;
    if (!fault_ || fault_->operation != operation) return std::nullopt;
    if (fault_->file != File::any && fault_->file != file) return std::nullopt;
    ++seen_;
    if (seen_ < fault_->nth || (seen_ > fault_->nth && !fault_->for_good)) return std::nullopt;
    fired_ = true;
    if (fault_->kind != Kind::stall) return fault_->kind;
    ++stalled_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !fault_; });
    --stalled_;
    return power_ ? std::nullopt : std::optional(Kind::io_error);
  }

  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out) {
    Shim& s = shim(file);
    s.base.pMethods = nullptr;
    s.impl = &of(vfs);
    s.kind = (flags & SQLITE_OPEN_WAL)       ? File::wal
             : (flags & SQLITE_OPEN_MAIN_DB) ? File::database
                                             : File::any;
    s.path = nullptr;
    if (s.impl->judge(Operation::open, s.kind)) return SQLITE_CANTOPEN;
    const int code = s.impl->real_->xOpen(s.impl->real_, path, s.real(), flags, out);
    if (code != SQLITE_OK) return code;
    if (path && (s.kind == File::wal || s.kind == File::database)) s.path = new std::string(path);
    s.base.pMethods = &methods();
    return SQLITE_OK;
  }

  static int remove(sqlite3_vfs* vfs, const char* path, int sync) {
    Impl& impl = of(vfs);
    if (impl.judge(Operation::remove, File::any)) return SQLITE_IOERR_DELETE;
    const int code = impl.real_->xDelete(impl.real_, path, sync);
    const std::lock_guard lock(impl.mutex_);
    if (code == SQLITE_OK) impl.pending_.erase(path);
    return code;
  }

  static int close(sqlite3_file* file) {
    Shim& s = shim(file);
    delete s.path;
    return s.real()->pMethods->xClose(s.real());
  }
  static int read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
    Shim& s = shim(file);
    if (s.impl->judge(Operation::read, s.kind)) return SQLITE_IOERR_READ;
    return s.real()->pMethods->xRead(s.real(), out, size, offset);
  }
  static int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
    Shim& s = shim(file);
    const auto fault = s.impl->judge(Operation::write, s.kind);
    if (fault == Kind::full) return SQLITE_FULL;
    if (fault == Kind::io_error) return SQLITE_IOERR_WRITE;
    const int length = fault == Kind::short_write ? size / 2 : size;
    s.impl->remember(
        s, offset,
        std::string_view(static_cast<const char*>(data), static_cast<std::size_t>(length)));
    const int code = s.real()->pMethods->xWrite(s.real(), data, length, offset);
    return code == SQLITE_OK && fault == Kind::short_write ? SQLITE_FULL : code;
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    Shim& s = shim(file);
    const auto fault = s.impl->judge(Operation::truncate, s.kind);
    if (fault) return fault == Kind::io_error ? SQLITE_IOERR_TRUNCATE : SQLITE_FULL;
    s.impl->remember(s, size, {});
    return s.real()->pMethods->xTruncate(s.real(), size);
  }
  static int sync(sqlite3_file* file, int flags) {
    Shim& s = shim(file);
    if (s.impl->judge(Operation::sync, s.kind)) return SQLITE_IOERR_FSYNC;
    // The disk of these tests does not lie, and waiting for it proves nothing: what counts is that
    // it was asked.
    static_cast<void>(flags);
    const std::lock_guard lock(s.impl->mutex_);
    if (s.path) s.impl->pending_.erase(*s.path);
    return SQLITE_OK;
  }
  static int shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
    Shim& s = shim(file);
    if (s.impl->judge(Operation::shm_map, s.kind)) return SQLITE_IOERR_SHMMAP;
    return s.real()->pMethods->xShmMap(s.real(), page, size, extend, out);
  }

  void remember(Shim& s, std::int64_t offset, std::string_view after) {
    if (!s.path) return;
    sqlite3_int64 size = 0;
    s.real()->pMethods->xFileSize(s.real(), &size);
    Pending p;
    p.offset = offset;
    p.after = after;
    p.size_before = size;
    const auto end = after.empty() ? size : offset + static_cast<std::int64_t>(after.size());
    if (offset < size) {
      p.before.resize(static_cast<std::size_t>(std::min<std::int64_t>(end, size) - offset));
      s.real()->pMethods->xRead(s.real(), p.before.data(), static_cast<int>(p.before.size()),
                                offset);
    }
    const std::lock_guard lock(mutex_);
    pending_[*s.path].push_back(std::move(p));
  }

  static const sqlite3_io_methods& methods() {
    static const sqlite3_io_methods all = [] {
      sqlite3_io_methods m{};
      m.iVersion = 2;  // no memory mapping of the database: it would go past us
      m.xClose = &close;
      m.xRead = &read;
      m.xWrite = &write;
      m.xTruncate = &truncate;
      m.xSync = &sync;
      m.xFileSize = [](sqlite3_file* f, sqlite3_int64* out) {
        return shim(f).real()->pMethods->xFileSize(shim(f).real(), out);
      };
      m.xLock = [](sqlite3_file* f, int level) {
        return shim(f).real()->pMethods->xLock(shim(f).real(), level);
      };
      m.xUnlock = [](sqlite3_file* f, int level) {
        return shim(f).real()->pMethods->xUnlock(shim(f).real(), level);
      };
      m.xCheckReservedLock = [](sqlite3_file* f, int* out) {
        return shim(f).real()->pMethods->xCheckReservedLock(shim(f).real(), out);
      };
      m.xFileControl = [](sqlite3_file* f, int op, void* argument) {
        return shim(f).real()->pMethods->xFileControl(shim(f).real(), op, argument);
      };
      m.xSectorSize = [](sqlite3_file* f) {
        return shim(f).real()->pMethods->xSectorSize(shim(f).real());
      };
      // Nothing that SQLite could take as a promise: no safe append, no atomic write.
      m.xDeviceCharacteristics = [](sqlite3_file*) { return 0; };
      m.xShmMap = &shm_map;
      m.xShmLock = [](sqlite3_file* f, int offset, int n, int flags) {
        return shim(f).real()->pMethods->xShmLock(shim(f).real(), offset, n, flags);
      };
      m.xShmBarrier = [](sqlite3_file* f) {
        shim(f).real()->pMethods->xShmBarrier(shim(f).real());
      };
      m.xShmUnmap = [](sqlite3_file* f, int remove_it) {
        return shim(f).real()->pMethods->xShmUnmap(shim(f).real(), remove_it);
      };
      return m;
    }();
    return all;
  }

  std::string name_;
  sqlite3_vfs* real_ = nullptr;
  sqlite3_vfs vfs_{};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Fault> fault_;
  std::uint64_t seen_ = 0;
  bool fired_ = false;
  int stalled_ = 0;
  bool power_ = true;
  std::map<std::string, std::vector<Pending>> pending_;
};

FaultVfs::FaultVfs() : impl_(std::make_unique<Impl>()) {}
FaultVfs::~FaultVfs() = default;
const std::string& FaultVfs::name() const { return impl_->name(); }
void FaultVfs::arm(const Fault& fault) { impl_->arm(fault); }
void FaultVfs::disarm() { impl_->disarm(); }
bool FaultVfs::fired() const { return impl_->fired(); }
bool FaultVfs::wait_until_stalled() {
  return impl_->wait_until_stalled([] { return false; });
}
bool FaultVfs::wait_until_stalled_or(const std::function<bool()>& over) {
  return impl_->wait_until_stalled(over);
}
void FaultVfs::release() { impl_->disarm(); }
void FaultVfs::cut_power() { impl_->cut_power(); }
void FaultVfs::restore_power(Random* random) { impl_->restore_power(random); }

}  // namespace einmal::testing
