#pragma once

#include <optional>
#include <string>

#include "einmal/store/run_in_transaction.hpp"
#include "einmal/workflow/journal.hpp"
#include "einmal/workflow/worker.hpp"

/// One worker's work on one row.
namespace einmal::workflow {

/// What a local step's recovery point holds: its output and what it staged. Nothing: not that.
Bytes encode_done(const said::Done& done);
std::optional<said::Done> decode_done(BytesView bytes);

class Run {
 public:
  Run(Worker& worker, const Definition& definition, WorkflowRow row, BootTime picked);
  /// Until the row ends, is given back, stopped or lost.
  Result<void> go();

 private:
  /// Nothing: go on with the next step.
  using Ended = std::optional<bool>;

  Result<Ended> do_step(const LocalStep& step);
  Result<Ended> do_step(const ExternalStep& step);
  Result<Ended> call(const ExternalStep& step, const StepState& before);
  Result<Ended> call_failed(const ExternalStep& step, int attempt, Mark mark, const Bytes& why);
  Result<Ended> look_into(const ExternalStep& step, const StepState& state);
  Result<Ended> ask(const ExternalStep& step, const in_doubt::Reconcile& how,
                    const StepState& state);
  Result<Ended> exhausted(const ExternalStep& step, const StepState& state);
  Result<Ended> local_ran(const LocalStep& step, const ran::Executed& executed);
  Result<Ended> local_delayed(const LocalStep& step, Duration at_least);

  Result<Ended> keep(const std::string& step, const said::Done& done);
  Result<Ended> refuse(const StoredResult& result);
  Result<Ended> delay(Duration by, Bytes append, std::string_view step);
  Result<Ended> stop(Bytes append, std::string_view step);
  Result<Ended> release();
  Result<Ended> finish(event::Final outcome, const StoredResult& result);

  /// False: lost, and the run is over.
  Result<bool> advance(request::WorkflowNext next, Bytes append = {},
                       std::vector<request::StagedWorkflow> staged = {});
  Result<Ended> ended_by(Result<bool> advanced, Point point, std::string_view step = {});
  void at(Point point, std::string_view step = {}) { worker_.observer_.at(point, row_.id, step); }
  std::string path(const std::string& step) const {
    return row_.name.empty() ? step : row_.name + "/" + step;
  }

  class Context;

  Worker& worker_;
  const Definition& definition_;
  WorkflowRow row_;
  Journal journal_;
  BootTime held_{};  ///< When the lease that runs was asked for.
};

}  // namespace einmal::workflow
