#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "einmal/postgres/wire.hpp"
#include "einmal/store/store.hpp"

struct pg_result;

/// Requests as statements, and rows as answers. No connection, no thread.
namespace einmal::postgres {

/// One statement; `name` is what it is prepared under.
struct Statement {
  const char* name = nullptr;
  const char* sql = nullptr;
  Parameters parameters;
};

/// One look at the caller's monotonic clock, which goes with nearly every statement.
struct Machine {
  BootId boot_id;
  BootTime boot;
};

/// What came back for one command of a batch.
struct StepAnswer {
  enum class Kind : std::uint8_t {
    decided,
    busy,      ///< Somebody holds the lock of the scope: nothing was looked at or changed.
    unusable,  ///< The row contradicts itself; `error`.
  };
  Kind kind = Kind::decided;
  Decision decision;
  Error error;
  std::optional<Record> record;  ///< busy: the committed record, if there is one.
};

/// Called for each row of a batch: which command, and what it is told.
using StepSink = std::function<void(std::size_t, StepAnswer)>;

/// The claims among `commands` in one statement. `known` profiles are not sent again.
Statement claims_statement(const std::vector<Command*>& claims, const Machine& machine,
                           const std::set<Digest>& known);
/// renew, settle, release, mark uncertain and abandon in one statement.
Statement owner_events_statement(const std::vector<Command*>& events, const Machine& machine);
/// Reads the rows of either; `commands` as they were given (null: an operator's event).
void read_steps(const pg_result* result, const std::vector<Command*>& commands,
                const StepSink& sink);

bool is_claim(const Command& command);
bool is_owner_event(const Command& command);

/// Statements of every other request, to be run in one transaction; the last one's rows are the
/// answer. `secure`: whether the transaction writes something that must be durable.
struct Single {
  std::vector<Statement> statements;
  bool secure = false;
};
Single single_statements(const Request& request, const Machine& machine, Duration audit_retention);
/// The answer of a single request from the rows of its last statement. busy: somebody holds the
/// lock of the scope.
Result<Answer> read_single(const Request& request, const pg_result* result, bool& busy);

}  // namespace einmal::postgres
