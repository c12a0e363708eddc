#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "einmal/base/random.hpp"
#include "einmal/store/store.hpp"

namespace einmal::testing {

/// Commands to a store as lines of text, so that a contract row, a random sequence and the failure
/// it found are all readable and can be typed in again. KEY and OWNER are any words; an owner is
/// one owner token; its generation of a key is the one it was last told.
///
///   claim KEY OWNER [body=N] [profile=N] [lease=DURATION|none] [takeover] [retention=DURATION]
///                   [refuse=DURATION]     (lease 30s, retention 1h; refuse gives the tombstone)
///   renew|release|abandon KEY OWNER
///   complete|fail KEY OWNER STATUS [declared] [resource=ID]
///   mark KEY OWNER [seen=STATUS]
///   doubt|forget KEY [stale]
///   resolve KEY completed|failed|freed [force] [stale] [reconciler]
///                   (names the generation that a read shows now; stale: the one before it)
///   overdue|sweep [LIMIT]
///   read|operation KEY     audit [KEY]     list     stats     live     count     profile N
///   advance-generations     accept-time
///
/// A duration is a number with us, ms, s, m, h or d.
class StoreScript {
 public:
  explicit StoreScript(Store& store) : store_(&store) {}

  /// Runs one line and waits for its answer. A line that is not understood is a programmer error.
  Result<Answer> run(std::string_view line);

  /// The store was reopened; what owners were told stays.
  void use(Store& store) { store_ = &store; }

  static Scope scope(const std::string& key);
  static OwnerToken token(const std::string& owner);
  static Profile profile(int number);

 private:
  struct Line;
  Result<Answer> transition(const Line& line, Event event);
  Event event_of(const Line& line);
  event::Claim claim_of(const Line& line);
  event::Resolve resolve_of(const Line& line);
  Generation told(const Line& line) const;
  Generation shown(const Line& line);
  Request request_of(const Line& line);

  Store* store_;
  SeededRandom random_{1};  // operation ids
  std::map<std::pair<std::string, std::string>, Generation> generations_;
  std::map<std::string, OperationId> operations_;
};

/// "250ms" and its kin.
Duration duration_of(std::string_view text);

}  // namespace einmal::testing
