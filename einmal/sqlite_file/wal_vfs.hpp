#pragma once

#include <string>

#include "einmal/base/error.hpp"

namespace einmal::sqlite_file {

/// The name of a VFS over `base` (a registered sqlite3_vfs; empty: the default one) that hands the
/// frames of a commit to the system as one write in place of two for each page. Registered at the
/// first call, kept to the end of the process. Thread-safe.
///
/// Only for connections with `synchronous = FULL`: the bytes wait in memory until the sync that
/// ends each commit (or a read, a truncation, or 512 KiB of them). SQLite tells nobody of a frame
/// before that sync, so whoever reads finds it in the file, and a crash before it loses what it
/// could have lost without us. A write that fails then fails the sync, and so the commit.
Result<std::string> wal_vfs(const std::string& base);

}  // namespace einmal::sqlite_file
