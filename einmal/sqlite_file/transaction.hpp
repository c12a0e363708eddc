#pragma once

#include "einmal/sqlite_file/connection.hpp"
#include "einmal/sqlite_file/statement.hpp"

namespace einmal::sqlite_file {

/// The statements that begin and end transactions, prepared once for a connection.
class TransactionControl {
 public:
  static Result<TransactionControl> prepare(Connection& connection);

  /// BEGIN IMMEDIATE: takes the file's write lock now, so that nothing that follows has to upgrade
  /// a snapshot. Errors: unavailable, when the lock did not come within the busy limit.
  Result<void> begin_write();
  /// BEGIN: the snapshot is taken by the first statement that reads.
  Result<void> begin_read();
  /// Errors: in_doubt if a write transaction may or may not have become durable (close the
  /// connection, open it again and read back); any other code: certainly rolled back.
  Result<void> commit();
  /// After this no transaction is open, whether SQLite had ended it by itself or not.
  void roll_back() noexcept;

 private:
  explicit TransactionControl(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
  Statement begin_write_, begin_read_, commit_, roll_back_;
  bool writing_ = false;
};

/// A transaction that is rolled back unless it was committed.
class Transaction {
 public:
  explicit Transaction(TransactionControl& control) : control_(control) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (open_) control_.roll_back();
  }

  Result<void> begin_write() { return opened(control_.begin_write()); }
  Result<void> begin_read() { return opened(control_.begin_read()); }
  Result<void> commit() {
    open_ = false;
    return control_.commit();
  }

 private:
  Result<void> opened(Result<void> begun) {
    open_ = begun.has_value();
    return begun;
  }
  TransactionControl& control_;
  bool open_ = false;
};

}  // namespace einmal::sqlite_file
