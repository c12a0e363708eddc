#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

#include "einmal/core/scope.hpp"
#include "einmal/sqlite/sqlite_session.hpp"

namespace einmal {

/// Who is inside: the scopes, and the one that may write.
class SqliteOpenScopes::Impl {
 public:
  /// Takes the scope; false when another transaction still holds it after `wait`.
  bool enter(const Scope& scope, Duration wait);
  /// Waits for the turn to write; false when it did not come within `wait`.
  bool take_turn(Duration wait);
  void give_turn();
  void leave(const Scope& scope);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<Scope> inside_;
  bool writing_ = false;
};

}  // namespace einmal
