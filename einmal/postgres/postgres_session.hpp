#pragma once

#include <memory>

#include "einmal/base/random.hpp"
#include "einmal/store/session.hpp"

struct pg_conn;

namespace einmal {

struct PostgresSessionOptions {
  /// How long it is tried to read back a commit in doubt.
  Duration read_back = std::chrono::seconds(10);
  /// Keeps two prepared statements on the connection. Off behind a pooler that shares sessions.
  bool prepare = true;
};

/// A Session on the caller's own PGconn (a `pg_conn*`), for run_in_transaction: one round trip for
/// BEGIN, claim and savepoint, one for completion and COMMIT. The role of the connection needs
/// einmal_app. Transactions have the isolation that the connection defaults to; at REPEATABLE READ
/// and SERIALIZABLE they are run again where the database asks for it.
///
/// The connection stays the caller's, who closes it. It must be idle, blocking and not in pipeline
/// mode whenever run_in_transaction is called, and outlive the session; many sessions may use it
/// one after another. It gets a libpq event procedure, which notices conflicts between transactions
/// whoever ran the statement. When a commit is in doubt the connection is made anew (PQreset):
/// settings and temporary tables of the session are then gone.
///
/// Namespace, caller and operation must be UTF-8 without NUL (`invalid`).
std::unique_ptr<Session> postgres_session(pg_conn* connection, Random& random,
                                          PostgresSessionOptions options = {});

}  // namespace einmal
