#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "einmal/base/random.hpp"

namespace einmal::testing {

/// A sqlite3_vfs over the default one that fails, stalls and forgets on command. Registered under
/// `name()` while it lives; every file opened through it must be closed before. Thread-safe.
class FaultVfs {
 public:
  enum class Operation : std::uint8_t { open, read, write, sync, truncate, shm_map, remove };
  enum class Kind : std::uint8_t {
    io_error,
    full,         ///< SQLITE_FULL; of a write or truncate.
    short_write,  ///< Half of the bytes are written, then SQLITE_FULL.
    stall,        ///< Stands still until `release`.
  };
  enum class File : std::uint8_t { any, database, wal };

  /// The `nth` operation (from 1, counted from `arm`) of this sort fails; `for_good`: so does every
  /// later one, until `disarm`.
  struct Fault {
    Operation operation = Operation::write;
    Kind kind = Kind::io_error;
    std::uint64_t nth = 1;
    bool for_good = false;
    File file = File::any;
  };

  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  const std::string& name() const;

  void arm(const Fault& fault);
  /// Also lets go what stands still.
  void disarm();
  /// Whether the fault has happened since `arm`.
  bool fired() const;
  /// Waits until an operation stands still; false after ten seconds.
  bool wait_until_stalled();
  /// The same, but gives up (false) as soon as `over` says so.
  bool wait_until_stalled_or(const std::function<bool()>& over);
  void release();

  /// From now on nothing reaches the disk and every operation fails.
  void cut_power();
  /// With every file closed: what was not synced is lost, or partly kept in any order of 512-byte
  /// sectors if `random` is given, as a disk may do it. Then power is on again.
  void restore_power(Random* random = nullptr);

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace einmal::testing
