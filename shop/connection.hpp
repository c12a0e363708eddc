#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "einmal/base/error.hpp"
#include "einmal/store/session.hpp"

namespace einmal::shop {

/// The books could not be read or written; the transaction in which that happened is to be undone.
struct BooksFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Row = std::vector<std::string>;

/// One connection to the database that holds the books. One thread at a time.
class Connection {
 public:
  virtual ~Connection() = default;

  /// Before each use: whether it works, if need be after connecting anew.
  virtual bool ready() = 0;
  /// Runs one statement that both databases understand; its parameters are $1, $2 ... in the order
  /// of their numbers. Throws BooksFailed.
  virtual std::vector<Row> run(const char* sql, const std::vector<std::string>& parameters) = 0;

  virtual void begin() = 0;   ///< Throws BooksFailed.
  virtual void commit() = 0;  ///< Throws BooksFailed.
  virtual void roll_back() = 0;

  /// For run_in_transaction on this connection.
  virtual Result<std::reference_wrapper<Session>> session() = 0;
  /// Removes up to `limit` records whose time is over.
  virtual Result<void> sweep(std::size_t limit) = 0;
};

/// Makes connections to one database. Thread-safe.
using Connect = std::function<Result<std::unique_ptr<Connection>>()>;

/// How much the books keep beside what was booked.
enum class Keeping : std::uint8_t {
  effects,  ///< Effects only. They outlive the process; in SQLite not every loss of power.
  keys,     ///< Also the records of idempotency keys: every commit is on the disk.
};

/// Where the books are: how to connect, and how many connections at once are of use.
struct Place {
  Connect connect;
  std::size_t connections = 1;
};

/// Books in an SQLite file, which is made if it is not there. Errors: unavailable.
Result<Place> sqlite_place(const std::string& path, Keeping keeping);

/// Books in a PostgreSQL database (a libpq connection string or URI), in a schema `shop` of their
/// own, which is made if it is not there, and so is the schema `einmal` for `Keeping::keys`: the
/// role must be allowed to. Errors: unavailable, and those of migrate_postgres.
Result<Place> postgres_place(const std::string& conninfo, Keeping keeping);

}  // namespace einmal::shop
