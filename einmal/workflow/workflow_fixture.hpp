#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "einmal/store/memory.hpp"
#include "einmal/testing/virtual_clock.hpp"
#include "einmal/workflow/start.hpp"
#include "einmal/workflow/worker.hpp"

namespace einmal::workflow {

using namespace std::chrono_literals;

inline Scope scope_of(const std::string& key) {
  return *Scope::make("app", "alice", "refund", key);
}

inline StoredResult result_of(int status, Bytes body = {}) {
  StoredResult result;
  result.status = status;
  result.body = std::move(body);
  return result;
}

inline StartRequest a_start(const std::string& key, const std::string& definition = "refund/1",
                            Bytes input = "order 7") {
  StartRequest request{scope_of(key), {}, nullptr, {}, definition, std::move(input)};
  request.policies.retention = 24h;
  return request;
}

inline ExternalStep external(const std::string& name, InDoubt in_doubt,
                             std::function<ExternalOutcome(const StepContext&, OutsideCall&)> run) {
  return {name, "provider", 10s, std::move(in_doubt), std::move(run), 50};
}

inline Definition definition_of(std::vector<Step> steps, std::uint32_t version = 1,
                                const std::string& name = "refund") {
  return {name, version, std::move(steps),
          [](const StepContext&) { return result_of(201, "refunded"); }};
}

/// A memory store on virtual time, seeded chance.
class WorkflowTest : public ::testing::Test {
 protected:
  std::unique_ptr<Worker> worker(std::vector<Definition> definitions,
                                 Observer& observer = no_workflow_observer()) {
    auto made = Worker::make(store_, clock_, random_, dependencies_, std::move(definitions),
                             nullptr, observer);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return std::move(*made);
  }
  OperationId start_one(const std::string& key, const std::string& definition = "refund/1") {
    const auto begun = start(store_, random_, a_start(key, definition));
    return std::get<started::Accepted>(*begun).id;
  }
  /// Runs `worker` until nothing is due for as long as `within`, in virtual time.
  void run_for(Worker& worker, Duration within, Duration step = 100ms) {
    for (Duration passed{}; passed <= within; passed += step) {
      while (*worker.run_one()) {
      }
      clock_.advance(step);
    }
  }
  Condition condition(const std::string& key) {
    auto answer = ask(store_, request::ReadScope{scope_of(key), true});
    const auto& found = std::get<answer::Found>(*answer).record;
    return found ? found->condition : Condition::absent;
  }
  std::optional<WorkflowRow> row(const OperationId& id) {
    auto answer = ask(store_, request::ReadWorkflow{id});
    auto& rows = std::get<answer::Workflows>(*answer).rows;
    return rows.empty() ? std::nullopt : std::optional(rows.front());
  }

  einmal::testing::VirtualClock clock_;
  SeededRandom random_{20261201};
  MemoryStore store_{clock_, random_};
  Dependencies dependencies_{clock_, random_};
};

}  // namespace einmal::workflow
