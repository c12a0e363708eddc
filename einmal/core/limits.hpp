#pragma once

#include <chrono>
#include <cstddef>

#include "einmal/base/clock.hpp"

namespace einmal {

/// Every hard limit on what a store keeps, in one place: configuration refuses what is beyond it
/// with file and line, `check_limits` refuses it in code, the schemas repeat it as constraints.
/// Defaults of an operation are lower and configurable; see `Policies` and the contract.

/// Longest idempotency key, in bytes.
inline constexpr std::size_t max_key_bytes = 255;
/// Longest namespace, caller and operation name, in bytes.
inline constexpr std::size_t max_scope_part_bytes = 1024;

/// A lease is a silence, not a running time: heartbeats renew it.
inline constexpr Duration min_lease = std::chrono::milliseconds(10);
inline constexpr Duration max_lease = std::chrono::hours(24);
inline constexpr Duration min_retention = std::chrono::milliseconds(1);
inline constexpr Duration max_retention = std::chrono::hours(24 * 3653);  // ten years
inline constexpr Duration min_tombstone = std::chrono::milliseconds(1);
inline constexpr Duration max_tombstone = std::chrono::hours(24 * 3653);

/// A stored result.
inline constexpr int min_status = 100;
inline constexpr int max_status = 999;
inline constexpr std::size_t max_stored_header_bytes = std::size_t{64} << 10;
inline constexpr std::size_t max_stored_body_bytes = std::size_t{64} << 20;
inline constexpr std::size_t max_resource_id_bytes = 1024;

/// The canonical form of a fingerprint profile.
inline constexpr std::size_t max_profile_bytes = std::size_t{64} << 10;

/// Who acted and why, in the audit.
inline constexpr std::size_t max_actor_bytes = 256;
inline constexpr std::size_t max_evidence_bytes = 4096;

/// A workflow: the name and version of its definition, the name of a staged one, what it is given,
/// and its journal.
inline constexpr std::size_t max_workflow_name_bytes = 255;
inline constexpr std::size_t max_workflow_input_bytes = std::size_t{1} << 20;
inline constexpr std::size_t max_workflow_journal_bytes = std::size_t{16} << 20;
inline constexpr std::size_t max_staged_at_once = 100;
inline constexpr Duration max_workflow_delay = std::chrono::hours(24 * 366);

/// One answer of a store: records of a sweep, overdue run, list page or audit page. More is served
/// in further batches.
inline constexpr std::size_t max_batch = 1000;

}  // namespace einmal
