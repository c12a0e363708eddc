#include "einmal/sqlite_file/wal_vfs.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace einmal::sqlite_file {
namespace {

constexpr std::size_t most_bytes = 512 * 1024;
/// SQLite's VFS for Unix takes only the lower 17 bits of a write's size.
constexpr std::size_t most_at_once = 64 * 1024;

/// What SQLite allocates for each file; the base VFS's own file lies behind it.
struct File {
  sqlite3_file head;
  sqlite3_io_methods methods;        ///< Of the version that the base's file has.
  std::vector<std::byte>* gathered;  ///< Null: not a WAL; everything is passed on.
  sqlite3_int64 begins;              ///< Where `gathered` belongs in the file.
  bool synced;                       ///< Since the writer's lock was taken.
  sqlite3_file* other;               ///< A database's WAL, a WAL's database; null: not open.
};
constexpr std::size_t base_at =
    (sizeof(File) + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);

File& own(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
sqlite3_file* base(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<std::byte*>(file) + base_at);
}

int flush(sqlite3_file* file) {
  auto* gathered = own(file).gathered;
  if (!gathered || gathered->empty()) return SQLITE_OK;
  int code = SQLITE_OK;
  for (std::size_t done = 0; done < gathered->size() && code == SQLITE_OK; done += most_at_once) {
    const auto size = std::min(most_at_once, gathered->size() - done);
    code = base(file)->pMethods->xWrite(base(file), gathered->data() + done, static_cast<int>(size),
                                        own(file).begins + static_cast<sqlite3_int64>(done));
  }
  gathered->clear();  // Written or not: after a failure SQLite rolls back.
  return code;
}

/// Passes a call on, after what was gathered.
template <auto Method, class... Parameters>
int after_flush(sqlite3_file* file, Parameters... parameters) {
  if (const int code = flush(file); code != SQLITE_OK) return code;
  return (base(file)->pMethods->*Method)(base(file), parameters...);
}

template <auto Method, class Returned, class... Parameters>
Returned pass(sqlite3_file* file, Parameters... parameters) {
  return (base(file)->pMethods->*Method)(base(file), parameters...);
}

int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  File& self = own(file);
  // What follows a sync in the same transaction fills up its last sector, and is not synced itself.
  if (!self.gathered || self.synced) {
    return base(file)->pMethods->xWrite(base(file), data, size, offset);
  }
  const auto held = static_cast<sqlite3_int64>(self.gathered->size());
  const bool follows = offset == self.begins + held && self.gathered->size() < most_bytes;
  if (held > 0 && !follows) {
    if (const int code = flush(file); code != SQLITE_OK) return code;
  }
  if (self.gathered->empty()) self.begins = offset;
  const auto* bytes = static_cast<const std::byte*>(data);
  try {
    self.gathered->insert(self.gathered->end(), bytes, bytes + size);
  } catch (const std::bad_alloc&) {
    return SQLITE_IOERR_NOMEM;
  }
  return SQLITE_OK;
}

int sync(sqlite3_file* file, int flags) {
  own(file).synced = true;
  return after_flush<&sqlite3_io_methods::xSync, int>(file, flags);
}

/// The end of a transaction: what was not synced by now was not committed, and its place in the
/// file may be somebody else's from the moment in which the lock is free.
int shm_lock(sqlite3_file* file, int offset, int n, int flags) {
  constexpr int write_lock = 0;
  constexpr int unlocks_writer = SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE;
  sqlite3_file* wal = own(file).other;
  if (wal && offset == write_lock && flags == unlocks_writer) {
    own(wal).gathered->clear();
    own(wal).synced = false;
  }
  return base(file)->pMethods->xShmLock(base(file), offset, n, flags);
}

int close(sqlite3_file* file) {
  delete own(file).gathered;
  own(file).gathered = nullptr;
  if (sqlite3_file* other = own(file).other) own(other).other = nullptr;
  return base(file)->pMethods->xClose(base(file));
}

sqlite3_io_methods methods_like(const sqlite3_io_methods& base) {
  using M = sqlite3_io_methods;
  M m{};
  m.iVersion = base.iVersion;
  m.xClose = close;
  m.xRead = after_flush<&M::xRead, void*, int, sqlite3_int64>;
  m.xWrite = write;
  m.xTruncate = after_flush<&M::xTruncate, sqlite3_int64>;
  m.xSync = sync;
  m.xFileSize = after_flush<&M::xFileSize, sqlite3_int64*>;
  m.xLock = pass<&M::xLock, int, int>;
  m.xUnlock = pass<&M::xUnlock, int, int>;
  m.xCheckReservedLock = pass<&M::xCheckReservedLock, int, int*>;
  m.xFileControl = pass<&M::xFileControl, int, int, void*>;
  m.xSectorSize = pass<&M::xSectorSize, int>;
  m.xDeviceCharacteristics = pass<&M::xDeviceCharacteristics, int>;
  if (base.iVersion >= 2) {
    m.xShmMap = pass<&M::xShmMap, int, int, int, int, void volatile**>;
    m.xShmLock = shm_lock;
    m.xShmBarrier = pass<&M::xShmBarrier, void>;
    m.xShmUnmap = pass<&M::xShmUnmap, int, int>;
  }
  if (base.iVersion >= 3) {
    m.xFetch = pass<&M::xFetch, int, sqlite3_int64, int, void**>;
    m.xUnfetch = pass<&M::xUnfetch, int, sqlite3_int64, void*>;
  }
  return m;
}

sqlite3_vfs& base_of(sqlite3_vfs* vfs) { return *static_cast<sqlite3_vfs*>(vfs->pAppData); }

int open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags, int* out_flags) {
  File& self = own(file);
  self = File{};
  const int code = base_of(vfs).xOpen(&base_of(vfs), name, base(file), flags, out_flags);
  if (!base(file)->pMethods) return code;
  if (code == SQLITE_OK && (flags & SQLITE_OPEN_WAL) != 0) {
    self.gathered = new (std::nothrow) std::vector<std::byte>;  // Null: every write for itself.
    if (self.gathered) {
      self.other = sqlite3_database_file_object(name);
      own(self.other).other = file;
    }
  }
  self.methods = methods_like(*base(file)->pMethods);
  self.head.pMethods = &self.methods;
  return code;
}

/// The same as the base but for its files. What has no file is called with our pAppData: passed on.
struct Vfs {
  std::string name;
  sqlite3_vfs vfs;
};

template <auto Method, class Returned, class... Parameters>
Returned forward(sqlite3_vfs* vfs, Parameters... parameters) {
  return (base_of(vfs).*Method)(&base_of(vfs), parameters...);
}

void fill(Vfs& made, sqlite3_vfs& base) {
  using V = sqlite3_vfs;
  V& v = made.vfs;
  v = base;
  v.iVersion = base.iVersion < 2 ? base.iVersion : 2;  // No replacing of system calls.
  v.szOsFile = static_cast<int>(base_at) + base.szOsFile;
  v.pNext = nullptr;
  v.zName = made.name.c_str();
  v.pAppData = &base;
  v.xOpen = open;
  v.xDelete = forward<&V::xDelete, int, const char*, int>;
  v.xAccess = forward<&V::xAccess, int, const char*, int, int*>;
  v.xFullPathname = forward<&V::xFullPathname, int, const char*, int, char*>;
  v.xDlOpen = forward<&V::xDlOpen, void*, const char*>;
  v.xDlError = forward<&V::xDlError, void, int, char*>;
  v.xDlSym = [](sqlite3_vfs* vfs, void* handle, const char* symbol) {
    return base_of(vfs).xDlSym(&base_of(vfs), handle, symbol);
  };
  v.xDlClose = forward<&V::xDlClose, void, void*>;
  v.xRandomness = forward<&V::xRandomness, int, int, char*>;
  v.xSleep = forward<&V::xSleep, int, int>;
  v.xCurrentTime = forward<&V::xCurrentTime, int, double*>;
  v.xGetLastError = forward<&V::xGetLastError, int, int, char*>;
  if (base.iVersion >= 2) {
    v.xCurrentTimeInt64 = forward<&V::xCurrentTimeInt64, int, sqlite3_int64*>;
  }
}

}  // namespace

Result<std::string> wal_vfs(const std::string& base) {
  static std::mutex mutex;
  static std::map<sqlite3_vfs*, std::unique_ptr<Vfs>> made;
  const std::lock_guard lock(mutex);
  sqlite3_vfs* found = sqlite3_vfs_find(base.empty() ? nullptr : base.c_str());
  if (!found) return failure(ErrorCode::invalid, "no SQLite VFS is named " + base);
  auto& vfs = made[found];
  if (!vfs) {
    vfs = std::make_unique<Vfs>();
    vfs->name = std::string("einmal-wal-") + found->zName;
    fill(*vfs, *found);
    if (const int code = sqlite3_vfs_register(&vfs->vfs, 0); code != SQLITE_OK) {
      made.erase(found);
      return failure(ErrorCode::internal,
                     std::string("registering an SQLite VFS: ") + sqlite3_errstr(code));
    }
  }
  return vfs->name;
}

}  // namespace einmal::sqlite_file
