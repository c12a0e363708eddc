#include "einmal/sqlite_file/transaction.hpp"

namespace einmal::sqlite_file {

Result<TransactionControl> TransactionControl::prepare(Connection& connection) {
  TransactionControl control(connection);
  const auto make = [&](Statement& into, const char* sql) -> Result<void> {
    auto made = connection.prepare(sql);
    if (!made) return pass_on(made);
    into = std::move(*made);
    return {};
  };
  if (auto r = make(control.begin_write_, "BEGIN IMMEDIATE"); !r) return pass_on(r);
  if (auto r = make(control.begin_read_, "BEGIN"); !r) return pass_on(r);
  if (auto r = make(control.commit_, "COMMIT"); !r) return pass_on(r);
  if (auto r = make(control.roll_back_, "ROLLBACK"); !r) return pass_on(r);
  return control;
}

Result<void> TransactionControl::begin_write() {
  writing_ = true;
  return begin_write_.run();
}

Result<void> TransactionControl::begin_read() {
  writing_ = false;
  return begin_read_.run();
}

Result<void> TransactionControl::commit() {
  auto committed = commit_.run();
  if (committed) return {};
  if (connection_->in_transaction()) {  // refused, and still open: nothing became durable
    roll_back();
    return committed;
  }
  if (!writing_) return committed;
  return failure(ErrorCode::in_doubt, committed.error().message + " (while committing)");
}

void TransactionControl::roll_back() noexcept {
  if (connection_->in_transaction()) static_cast<void>(roll_back_.run());
}

}  // namespace einmal::sqlite_file
