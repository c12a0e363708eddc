#include "einmal/sqlite/open_scopes.hpp"

namespace einmal {

SqliteOpenScopes::SqliteOpenScopes() : impl_(std::make_unique<Impl>()) {}
SqliteOpenScopes::~SqliteOpenScopes() = default;

bool SqliteOpenScopes::Impl::enter(const Scope& scope, Duration wait) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, wait, [&] { return !inside_.contains(scope); })) return false;
  inside_.insert(scope);
  return true;
}

bool SqliteOpenScopes::Impl::take_turn(Duration wait) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, wait, [&] { return !writing_; })) return false;
  writing_ = true;
  return true;
}

void SqliteOpenScopes::Impl::give_turn() {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  changed_.notify_all();
}

void SqliteOpenScopes::Impl::leave(const Scope& scope) {
  const std::lock_guard lock(mutex_);
  inside_.erase(scope);
  changed_.notify_all();
}

}  // namespace einmal
