#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/store/store.hpp"

namespace einmal {

struct PostgresStoreOptions {
  /// Connections for claims, owners' events and look-ups. Beside them the store holds one for
  /// lists, counts, sweeps and operators' acts, and one for notifications where those work.
  int connections = 2;
  /// Commands in one transaction at most. Each holds an advisory lock until the commit, and those
  /// are a resource that the whole server shares.
  std::size_t max_batch = 128;
  /// The server gives up a statement that takes longer; `unavailable`. Sweeps and lists get ten
  /// times as much.
  Duration statement_timeout = std::chrono::seconds(10);
  /// How long a command waits for a connection while there is none; then `unavailable`.
  Duration patience = std::chrono::seconds(1);
  /// How long a claim waits for a scope that another transaction holds (milliseconds, between
  /// gateways; as long as it likes, for an application's own transaction); then in progress.
  Duration scope_patience = std::chrono::milliseconds(100);
  Duration audit_retention = std::chrono::hours(24 * 400);
};

/// The shared store: schema `einmal` of a PostgreSQL database (docs/postgres.md), for any number of
/// gateways on any number of machines. `conninfo` is a libpq connection string or URI; several
/// hosts may be named, the one that takes writes is used.
///
/// Starts one thread of its own, on which `completed` runs; it never blocks on the server. What
/// waits is committed in one transaction by the row functions; a failing command is tried again
/// alone. Connections are made again with growing pauses. The destructor answers every command it
/// was given. Clock (used to notice a server clock that jumps) and Random must outlive the store
/// and be thread-safe.
///
/// Differs from the embedded store: leases end by the server's wall clock (a reboot does not end
/// them), and a claim on a scope that another transaction holds is in progress though its record
/// may be invisible (then without generation and operation id).
///
/// After a crash of the server it holds every step that was answered, as long as the server keeps
/// what it confirmed (fsync, replication: see doctor_postgres). Behind a pooler that shares
/// sessions (PgBouncer in transaction mode) it uses unnamed statements and polls.
///
/// Errors of opening: unavailable, incompatible (no schema: run einmal migrate; a schema this
/// version must not write; missing rights), invalid (the connection string).
Result<std::unique_ptr<Store>> open_postgres_store(const std::string& conninfo,
                                                   const PostgresStoreOptions& options,
                                                   const Clock& clock, Random& random);

}  // namespace einmal
