#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "einmal/base/bytes.hpp"
#include "einmal/base/clock.hpp"
#include "einmal/core/record.hpp"
#include "einmal/core/scope.hpp"
#include "einmal/engine/outside_call.hpp"

/// What a workflow is made of: named steps, run in their order. Each has a recovery point, so that
/// whoever goes on after a crash knows what was done. What the steps say is said in types.

namespace einmal::workflow {

/// Work to be done once this step is durable (mail, a webhook), by workers, at least once, under a
/// definition of its own. `name` is unique within the workflow: its derived keys are computed under
/// it.
struct Staged {
  std::string definition;  ///< Name and version: "mail/1".
  std::string name;        ///< "receipt"
  Bytes input;
};

/// What a step says.
namespace said {
/// It is done. The output is what later steps see, after a crash, too.
struct Done {
  Bytes output;
  std::vector<Staged> staged;
};
/// Refused for good: the workflow ends here, failed, with this result.
struct Refused {
  StoredResult result;
};
/// Certainly no effect: tried again later.
struct NotNow {
  NoEffect proof;
};
/// It may have happened: the step is in doubt.
struct Unknown {
  std::string why;
};
}  // namespace said

using ExternalOutcome = std::variant<said::Done, said::Refused, said::NotNow, said::Unknown>;
/// A local step cannot be in doubt: it commits with its recovery point, or not at all. One that
/// cannot go on now throws: everything is undone and tried again later.
using LocalOutcome = std::variant<said::Done, said::Refused>;

/// What a step sees.
class StepContext {
 public:
  virtual ~StepContext() = default;
  virtual const Scope& scope() const = 0;
  virtual OperationId id() const = 0;
  virtual const Bytes& input() const = 0;
  /// Of an earlier step; null if there is none of this name.
  virtual const Bytes* output(std::string_view step) const = 0;
  /// The key to hand to the other system in this step: the same in every attempt.
  virtual std::string derived_key() const = 0;
  virtual std::string derived_uuid() const = 0;
  /// Counts from 1.
  virtual int attempt() const = 0;
};

/// Runs on the caller's own database transaction, together with its recovery point.
struct LocalStep {
  std::string name;
  std::function<LocalOutcome(const StepContext&)> run;
};

/// What is done about an external step of which nobody knows whether it happened.
namespace in_doubt {
/// Run it again: for systems that honour the derived key.
struct Resend {};
/// What a reconciler found out.
struct Absent {};  ///< It did not happen and no longer can.
using Found = std::variant<said::Done, said::Refused, Absent, said::Unknown>;
/// Ask. It is asked when `quiescence` has passed since the attempt could last have sent a byte:
/// within that time a request may still be on its way, so "absent" would prove nothing. Unknown is
/// asked again, with backoff, `attempts` times; then the workflow stops in `uncertain`.
struct Reconcile {
  std::function<Found(const StepContext&)> ask;
  Duration quiescence;
  int attempts = 20;
};
/// Stop in `uncertain`: a person settles it.
struct Stop {};
}  // namespace in_doubt
using InDoubt = std::variant<in_doubt::Stop, in_doubt::Resend, in_doubt::Reconcile>;

struct ExternalStep {
  std::string name;
  std::string dependency;  ///< Whose breaker and retry budget it goes by.
  /// The longest that one attempt takes, from first_byte() on; enforce it by the client's timeouts.
  /// The lease is this and a margin, so nobody else starts before it is over.
  Duration at_most = std::chrono::seconds(30);
  InDoubt in_doubt;
  /// Throwing says Unknown.
  std::function<ExternalOutcome(const StepContext&, OutsideCall&)> run;
  int attempts = 50;  ///< In all; then the workflow stops in `uncertain`, or is released if
                      ///< certainly nothing of it happened.
};

using Step = std::variant<LocalStep, ExternalStep>;

/// A workflow in one version. A changed order, name or meaning of steps is another version; workers
/// register the old one for as long as there are workflows of it. What no worker knows waits, and
/// is counted (CountWorkflows).
struct Definition {
  std::string name;
  std::uint32_t version = 1;
  std::vector<Step> steps;
  /// The result of the operation once all steps are done. Pure.
  std::function<StoredResult(const StepContext&)> finish;

  std::string id() const { return name + "/" + std::to_string(version); }
};

}  // namespace einmal::workflow
