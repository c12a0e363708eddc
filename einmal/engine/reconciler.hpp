#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "einmal/base/clock.hpp"
#include "einmal/store/store.hpp"

namespace einmal {

/// What was found out about an uncertain operation.
namespace finding {
struct Completed {
  StoredResult result;
};
struct Failed {
  StoredResult result;
};
/// No effect was seen. Frees the key once quiescence has passed, never before.
struct Absent {};
struct Unknown {};  ///< Ask again later.
}  // namespace finding

struct OutcomeFinding {
  std::variant<finding::Completed, finding::Failed, finding::Absent, finding::Unknown> what =
      finding::Unknown{};
  std::string evidence;  ///< For the audit: what was asked and seen. No credential, no body.
};

/// How one operation is reconciled.
struct ReconcileRules {
  std::string name;  ///< Who asks, for the audit: `reconciler:NAME`.
  /// How long after its last byte a request may still take effect. Counted from when this process
  /// first saw the record uncertain, which is later than any byte of an owner that said so itself
  /// or whose lease ended; a restart counts anew. Nothing: `Absent` frees nothing.
  std::optional<Duration> quiescence;
  Duration first_delay = std::chrono::seconds(1);
  Duration longest_delay = std::chrono::minutes(5);
  unsigned tries = 20;  ///< Then an alarm, and this process asks no more.
};

/// Asks what became of uncertain operations. Called on the engine's thread; must outlive it.
class Reconciler {
 public:
  virtual ~Reconciler() = default;
  /// Whether any operation is reconciled now; otherwise the store is not even looked at.
  virtual bool is_wanted() const { return true; }
  /// Nothing: this operation is not reconciled.
  virtual std::optional<ReconcileRules> rules(const Scope& scope) = 0;
  /// Calls `done` exactly once, never inside this call. The record comes without result bytes.
  virtual void ask(const StoredRecord& record, std::function<void(OutcomeFinding)> done) = 0;
};

}  // namespace einmal
