#pragma once

#include <string>

#include "einmal/base/error.hpp"
#include "einmal/core/record.hpp"
#include "einmal/core/scope.hpp"
#include "einmal/postgres/wire.hpp"

/// Rows of einmal.record and their parts.
namespace einmal::postgres {

/// The select list that `read_record` expects, of a composite value such as "((x.s).r)".
std::string record_columns(const std::string& composite);
inline constexpr int record_column_count = 30;

/// What is stored under a scope. `first`: the column where the list begins. Errors: corrupt.
Result<Record> read_record(const Row& row, int first);
Result<Scope> read_scope(const Row& row, int first);
/// Whether the composite value was NULL: no record.
bool no_record(const Row& row, int first);

/// StoredResult as the seven columns status, headers, body, body_kept, effect,
/// representation_version, resource_id.
std::optional<StoredResult> read_result(const Row& row, int first);

/// The profile "none" (all zero) is no bytes in a row.
Bytes profile_bytes(const Digest& profile);
BytesView digest_bytes(const Digest& digest);
/// Nothing unless it has 32 bytes, or none where `or_empty`.
std::optional<Digest> read_digest(BytesView bytes, bool or_empty);

}  // namespace einmal::postgres
