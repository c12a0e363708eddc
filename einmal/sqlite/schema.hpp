#pragma once

#include "einmal/sqlite_file/connection.hpp"

namespace einmal::sqlite {

/// Schema version of this build (docs/formats/sqlite.md). The oldest version that may write to a
/// file of it stands in the file as `oldest_writer`: 1.
inline constexpr int schema_version = 2;

/// The store's file: application_id "eiml" and the steps of its schema.
const sqlite_file::FileKind& store_file_kind();

}  // namespace einmal::sqlite
