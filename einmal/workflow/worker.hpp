#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "einmal/base/random.hpp"
#include "einmal/store/session.hpp"
#include "einmal/store/store.hpp"
#include "einmal/workflow/definition.hpp"
#include "einmal/workflow/dependencies.hpp"
#include "einmal/workflow/observer.hpp"

namespace einmal::workflow {

struct WorkerOptions {
  /// Beyond what a step may take: for the store, and for a process that is not scheduled. The first
  /// byte of a call goes out only within this after its intent was sent to the store.
  Duration margin = std::chrono::seconds(10);
  /// Of a local step's transaction, and of everything between two steps.
  Duration lease = std::chrono::seconds(30);
  /// Between two looks when nothing is due, and as much again by chance.
  Duration idle = std::chrono::milliseconds(200);
  /// How long the caller's database remembers that a local step was done: longer than any workflow
  /// takes, stopped ones included. After it a repetition is refused, never run.
  Duration remember_local_steps = std::chrono::hours(24 * 400);
};

/// Works on workflows, one at a time, on the thread that calls it. Any number of workers in any
/// number of processes share a store: each row is leased to one, and every write of one that lost
/// its lease is refused. Safe to kill at any moment.
class Worker {
 public:
  /// `session`: of the database of local steps, on the connection that they use; null if no
  /// definition has any. Everything must outlive the worker. Two definitions of one id, or a local
  /// step without a session, are `invalid`; a store without workflows `unsupported`.
  static Result<std::unique_ptr<Worker>> make(Store& store, const Clock& clock, Random& random,
                                              Dependencies& dependencies,
                                              std::vector<Definition> definitions, Session* session,
                                              Observer& observer = no_workflow_observer(),
                                              WorkerOptions options = {});

  /// Takes one that is due and works on it until it ends, is delayed, stopped or lost. False: none
  /// is due. Errors are the store's; what was taken is then taken again by somebody once its lease
  /// is over.
  Result<bool> run_one();

  /// run_one until stop is requested, pausing when nothing is due or the store fails. A step that
  /// runs is not interrupted.
  void run(const std::stop_token& stop);

 private:
  Worker(Store& store, const Clock& clock, Random& random, Dependencies& dependencies,
         std::vector<Definition> definitions, Session* session, Observer& observer,
         WorkerOptions options);
  friend class Run;

  Store& store_;
  const Clock& clock_;
  Random& random_;
  Dependencies& dependencies_;
  const std::vector<Definition> definitions_;
  Session* session_;
  Observer& observer_;
  const WorkerOptions options_;
  const OwnerToken token_;
};

/// Somebody settled by hand what a stopped workflow did not know: the step in doubt was done, with
/// this output, or had no effect and is to be run again. The workflow goes on. Errors: invalid (it
/// is not stopped, has another fence, or its step is not in doubt).
Result<answer::Advanced> settle_step(Store& store, const OperationId& id, std::uint64_t fence,
                                     const std::string& step, std::optional<Bytes> done);

}  // namespace einmal::workflow
