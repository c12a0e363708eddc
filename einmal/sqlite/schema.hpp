#pragma once

#include "einmal/sqlite_file/connection.hpp"

namespace einmal::sqlite {

/// Schema version of this build (docs/formats/sqlite.md); also what it writes as `oldest_writer`:
/// the oldest version that may write to a file of this one.
inline constexpr int schema_version = 1;

/// The store's file: application_id "eiml" and the steps of its schema.
const sqlite_file::FileKind& store_file_kind();

}  // namespace einmal::sqlite
