#include <libpq-fe.h>

#include <algorithm>

#include "einmal/postgres/connection.hpp"
#include "einmal/postgres/record_row.hpp"
#include "einmal/postgres/statements.hpp"
#include "einmal/postgres/workflow_statements.hpp"
#include "einmal/store/check_request.hpp"

/// Requests that are not batched: reads, lists, operators' acts, upkeep.
namespace einmal::postgres {

namespace {

void add_machine(Parameters& parameters, const Machine& machine) {
  parameters.uuid(machine.boot_id.bytes()).int8(machine.boot.time_since_epoch().count());
}

void add_scope(Parameters& parameters, const Scope& scope) {
  parameters.bytes(scope.name_space())
      .bytes(scope.caller())
      .bytes(scope.operation())
      .bytes(scope.key());
}

void add_optional(Parameters& parameters, const std::optional<std::string>& value) {
  value ? parameters.bytes(*value) : parameters.null(Type::bytes);
}

void add_result(Parameters& parameters, const std::optional<StoredResult>& result) {
  if (!result) {
    parameters.null(Type::int4).null(Type::bytes).null(Type::bytes).null(Type::int2);
    parameters.null(Type::int2).null(Type::int4).null(Type::bytes);
    return;
  }
  parameters.int4(result->status).bytes(result->headers).bytes(result->body);
  parameters.int2(static_cast<std::int16_t>(result->body_kept));
  parameters.int2(static_cast<std::int16_t>(result->effect));
  parameters.int4(result->representation_version);
  add_optional(parameters, result->resource_id);
}

Statement named(const char* name, const std::string& sql) { return {name, sql.c_str(), {}}; }

// --- one scope, by an operator or by time

const std::string& step_sql(const char* call) {
  static const auto list = step_columns_of_one;
  static const std::string operators = list(
      "einmal.operator_event($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, "
      "$16, $17, $18)");
  static const std::string clocks = list("einmal.clock_event($1, $2, $3, $4, $5, $6, $7)");
  return call[0] == 'o' ? operators : clocks;
}

Statement operator_statement(const char* kind, const request::Transition& transition,
                             Generation generation, const event::Resolve* resolve) {
  Statement statement = named("einmal_operator_event", step_sql("operator"));
  Parameters& parameters = statement.parameters;
  parameters.text(kind);
  add_scope(parameters, transition.scope);
  parameters.int8(static_cast<std::int64_t>(number(generation)));
  if (resolve) {
    // Resolution 1 completed, 2 failed, 3 freed; states 2, 3, 5.
    const int state =
        resolve->to == event::Resolution::freed ? 5 : static_cast<int>(resolve->to) + 1;
    parameters.int2(static_cast<std::int16_t>(state));
    add_result(parameters, resolve->result);
    parameters.int2(static_cast<std::int16_t>(resolve->by)).boolean(resolve->force);
  } else {
    parameters.null(Type::int2);
    add_result(parameters, std::nullopt);
    parameters.null(Type::int2).boolean(false);
  }
  parameters.bytes(transition.actor.who).bytes(transition.actor.evidence);
  return statement;
}

Statement clock_statement(const char* kind, const Scope& scope, const Machine& machine) {
  Statement statement = named("einmal_clock_event", step_sql("clock"));
  add_machine(statement.parameters, machine);
  statement.parameters.text(kind);
  add_scope(statement.parameters, scope);
  return statement;
}

// --- reads

constexpr int stored_columns = 3;  // condition, lease_left, at
constexpr int digest_column = stored_columns + record_column_count;

const std::string& stored_sql(const char* call) {
  static const auto list = [](const std::string& from) {
    return "select x.condition, x.lease_left, x.at, " + record_columns("(x.r)") +
           ", (x.r).digest from " + from + " x";
  };
  static const std::string scope = list("einmal.read_scope($1, $2, $3, $4, $5, $6, $7)");
  static const std::string operation = list("einmal.read_operation($1, $2, $3, $4)");
  static const std::string page = list("einmal.list($1, $2, $3, $4, $5, $6, $7, $8, $9)");
  return call[0] == 's' ? scope : call[0] == 'o' ? operation : page;
}

Result<StoredRecord> read_stored(const Row& row) {
  auto scope = read_scope(row, stored_columns);
  if (!scope)
    return failure(ErrorCode::corrupt, "postgres: einmal.record holds a scope that is none");
  auto record = read_record(row, stored_columns);
  if (!record) return pass_on(record);
  const Duration age = std::max(Duration::zero(), row.time(2) - record->claimed);
  return StoredRecord{std::move(*scope), std::move(*record), static_cast<Condition>(row.integer(0)),
                      row.optional_interval(1), age};
}

Statement look_statement(const Machine& machine) {
  Statement statement{"einmal_look", "select einmal.look($1, $2)", {}};
  add_machine(statement.parameters, machine);
  return statement;
}

/// Builds the statements of one request.
struct Build {
  const Machine& machine;
  Duration audit_retention;

  Single operator()(const request::Transition& t) const {
    if (const auto* doubt = std::get_if<event::Doubt>(&t.event))
      return {{operator_statement("doubt", t, doubt->generation, nullptr)}, true};
    if (const auto* forget = std::get_if<event::Forget>(&t.event))
      return {{operator_statement("forget", t, forget->generation, nullptr)}, true};
    if (const auto* resolve = std::get_if<event::Resolve>(&t.event))
      return {{operator_statement("resolve", t, resolve->generation, resolve)}, true};
    const bool sweep = std::holds_alternative<event::Sweep>(t.event);
    return {{clock_statement(sweep ? "sweep" : "overdue", t.scope, machine)}, true};
  }
  Single operator()(const request::ReadScope& read) const {
    Statement statement = named("einmal_read_scope", stored_sql("scope"));
    add_machine(statement.parameters, machine);
    add_scope(statement.parameters, read.scope);
    statement.parameters.boolean(read.with_body);
    return {{std::move(statement)}, false};
  }
  Single operator()(const request::ReadOperation& read) const {
    Statement statement = named("einmal_read_operation", stored_sql("operation"));
    add_machine(statement.parameters, machine);
    statement.parameters.uuid(read.id.bytes()).boolean(read.with_body);
    return {{std::move(statement)}, false};
  }
  Single operator()(const request::ReadProfile& read) const {
    Statement statement{"einmal_read_profile", "select einmal.read_profile($1)", {}};
    statement.parameters.bytes(digest_bytes(read.id));
    return {{std::move(statement)}, false};
  }
  Single operator()(const request::ReadAudit& read) const {
    Statement statement{
        "einmal_read_audit",
        "select at, namespace, caller, operation, key, operation_id, event, generation, before, "
        "after, late_outcome, contradicts, who, evidence, status, headers, body, body_kept, "
        "effect, representation_version, resource_id "
        "from einmal.read_audit($1, $2, $3, $4, $5, $6)",
        {}};
    Parameters& parameters = statement.parameters;
    if (read.scope) {
      add_scope(parameters, *read.scope);
    } else {
      for (int i = 0; i < 4; ++i) parameters.null(Type::bytes);
    }
    read.id ? parameters.uuid(read.id->bytes()) : parameters.null(Type::uuid);
    parameters.int4(static_cast<std::int32_t>(bounded(read.limit)));
    return {{std::move(statement)}, false};
  }
  Single operator()(const request::Overdue& overdue) const {
    Statement statement{
        "einmal_overdue", "select changed, stripped, more from einmal.overdue($1)", {}};
    statement.parameters.int4(static_cast<std::int32_t>(bounded(overdue.limit)));
    return {{look_statement(machine), std::move(statement)}, true};
  }
  Single operator()(const request::Sweep& sweep) const {
    Statement statement{
        "einmal_sweep", "select changed, stripped, more from einmal.sweep($1, $2)", {}};
    statement.parameters.int4(static_cast<std::int32_t>(bounded(sweep.limit)));
    statement.parameters.interval(audit_retention);
    return {{look_statement(machine), std::move(statement)}, true};
  }
  Single operator()(const request::List& list) const {
    Statement statement = named("einmal_list", stored_sql("page"));
    Parameters& parameters = statement.parameters;
    add_machine(parameters, machine);
    add_optional(parameters, list.name_space);
    add_optional(parameters, list.caller);
    add_optional(parameters, list.operation);
    Array conditions(Type::int2);
    for (const Condition condition : list.conditions)
      conditions.add(wire_int2(static_cast<std::int16_t>(condition)));
    list.conditions.empty() ? parameters.null(Type::int2_array) : parameters.add(conditions);
    list.min_age ? parameters.interval(*list.min_age) : parameters.null(Type::interval);
    // One more than the page: whether there is another page.
    parameters.int4(static_cast<std::int32_t>(bounded(list.limit)) + 1);
    list.after.empty() ? parameters.null(Type::uuid) : parameters.uuid(list.after);
    return {{std::move(statement)}, false};
  }
  Single operator()(const request::Stats&) const {
    // One row a condition, each with what belongs to the whole store; one row without a condition
    // when the store is empty.
    Statement statement{"einmal_stats",
                        "select s.condition, s.records, s.bytes, s.oldest, s.due, s.lag, "
                        "t.last_generation, t.expiry_paused from einmal.store_state($1, $2) t "
                        "left join einmal.stats($1, $2) s on true",
                        {}};
    add_machine(statement.parameters, machine);
    return {{std::move(statement)}, false};
  }
  Single operator()(const request::LiveOperations& live) const {
    Statement statement{"einmal_live_operations", "select einmal.live_operations($1, $2, $3)", {}};
    add_machine(statement.parameters, machine);
    statement.parameters.bytes(live.name_space);
    return {{std::move(statement)}, false};
  }
  Single operator()(const request::CountCaller& count) const {
    Statement statement{"einmal_count_caller",
                        "select live, uncertain from einmal.count_caller($1, $2, $3, $4)",
                        {}};
    add_machine(statement.parameters, machine);
    statement.parameters.bytes(count.name_space).bytes(count.caller);
    return {{std::move(statement)}, false};
  }
  Single operator()(const request::AdvanceGenerations& advance) const {
    return by_actor("einmal_advance_generations", "select einmal.advance_generations($1, $2)",
                    advance.actor);
  }
  Single operator()(const request::AcceptTime& accept) const {
    Single single =
        by_actor("einmal_accept_time", "select einmal.accept_time($1, $2)", accept.actor);
    single.statements.push_back(look_statement(machine));
    return single;
  }
  template <class OfWorkflows>
  Single operator()(const OfWorkflows& request) const {
    return workflow_statements(request, machine);
  }

 private:
  static Single by_actor(const char* name, const char* sql, const Actor& actor) {
    Statement statement{name, sql, {}};
    statement.parameters.text(actor.who).text(actor.evidence);
    return {{std::move(statement)}, true};
  }
};

// --- answers

/// The statement asks for one record more than a page has.
Result<Answer> read_page(const pg_result* result, std::size_t limit) {
  answer::Page page;
  const auto found = static_cast<std::size_t>(PQntuples(result));
  for (std::size_t i = 0; i < std::min(found, limit); ++i) {
    auto stored = read_stored(Row(result, static_cast<int>(i)));
    if (!stored) return pass_on(stored);
    page.records.push_back(std::move(*stored));
  }
  if (found > limit) page.next = Row(result, static_cast<int>(limit) - 1).bytes(digest_column);
  return page;
}

AuditRow read_audit_row(const Row& row) {
  AuditRow out;
  out.at = row.time(0);
  if (!row.is_null(1)) {
    auto scope = Scope::make(Bytes(row.bytes(1)), Bytes(row.bytes(2)), Bytes(row.bytes(3)),
                             Bytes(row.bytes(4)));
    if (scope) out.scope = std::move(*scope);
  }
  if (const auto id = OperationId::from_bytes(row.bytes(5))) out.operation_id = *id;
  out.audit.event = static_cast<AuditEvent>(row.integer(6));
  out.audit.generation = Generation{static_cast<std::uint64_t>(row.integer(7))};
  if (const auto before = row.optional_integer(8)) out.audit.before = static_cast<State>(*before);
  if (const auto after = row.optional_integer(9)) out.audit.after = static_cast<State>(*after);
  if (const auto late = row.optional_integer(10))
    out.audit.late_outcome = static_cast<event::Final>(*late);
  out.audit.contradicts = row.boolean(11);
  out.actor = {Bytes(row.bytes(12)), Bytes(row.bytes(13))};
  out.audit.late_result = read_result(row, 14);
  return out;
}

answer::Stats::PerCondition* slot(answer::Stats& stats, BytesView condition) {
  if (condition == "processing") return &stats.processing;
  if (condition == "completed") return &stats.completed;
  if (condition == "failed") return &stats.failed;
  if (condition == "uncertain") return &stats.uncertain;
  if (condition == "freed") return &stats.freed;
  if (condition == "tombstone") return &stats.tombstone;
  if (condition == "expired") return &stats.expired;
  return nullptr;
}

answer::Stats read_stats(const pg_result* result) {
  answer::Stats stats;
  for (int i = 0; i < PQntuples(result); ++i) {
    const Row row(result, i);
    stats.last_generation = Generation{static_cast<std::uint64_t>(row.integer(6))};
    stats.expiry_paused = row.boolean(7);
    auto* counted = slot(stats, row.bytes(0));
    if (!counted) continue;
    *counted = {static_cast<std::uint64_t>(row.integer(1)),
                static_cast<std::uint64_t>(row.integer(2))};
    const Duration oldest = row.interval(3);
    if (counted == &stats.processing) stats.oldest_processing = oldest;
    if (counted == &stats.uncertain) stats.oldest_uncertain = oldest;
    if (counted != &stats.freed && counted != &stats.expired)
      stats.oldest_live = std::max(stats.oldest_live.value_or(Duration::zero()), oldest);
    stats.sweep_backlog += static_cast<std::uint64_t>(row.integer(4));
    if (const auto lag = row.optional_interval(5))
      stats.sweep_lag = std::max(stats.sweep_lag.value_or(Duration::zero()), *lag);
  }
  return stats;
}

Result<Answer> read_found(const pg_result* result) {
  if (PQntuples(result) == 0) return answer::Found{};
  auto stored = read_stored(Row(result, 0));
  if (!stored) return pass_on(stored);
  return answer::Found{std::move(*stored)};
}

/// Reads the answer of one request.
struct Read {
  const pg_result* result;
  bool& busy;

  Result<Answer> operator()(const request::Transition&) const { return decided(); }
  Result<Answer> operator()(const request::StartWorkflow&) const { return decided(); }
  Result<Answer> decided() const {
    StepAnswer step;
    step.kind = StepAnswer::Kind::unusable;
    step.error = {ErrorCode::internal, "postgres: an event was not answered"};
    read_steps(result, {nullptr},
               [&](std::size_t, StepAnswer answer) { step = std::move(answer); });
    busy = step.kind == StepAnswer::Kind::busy;
    if (step.kind == StepAnswer::Kind::unusable) return tl::unexpected(step.error);
    return std::move(step.decision);
  }
  Result<Answer> operator()(const request::ReadScope&) const { return read_found(result); }
  Result<Answer> operator()(const request::ReadOperation&) const { return read_found(result); }
  Result<Answer> operator()(const request::ReadProfile&) const {
    return answer::FoundProfile{Row(result, 0).optional_bytes(0)};
  }
  Result<Answer> operator()(const request::ReadAudit&) const {
    answer::AuditRows rows;
    for (int i = 0; i < PQntuples(result); ++i) rows.rows.push_back(read_audit_row(Row(result, i)));
    return rows;
  }
  Result<Answer> operator()(const request::Overdue&) const { return moved(); }
  Result<Answer> operator()(const request::Sweep&) const { return moved(); }
  Result<Answer> operator()(const request::List& list) const {
    return read_page(result, bounded(list.limit));
  }
  Result<Answer> operator()(const request::Stats&) const { return read_stats(result); }
  Result<Answer> operator()(const request::LiveOperations&) const {
    answer::Names names;
    for (int i = 0; i < PQntuples(result); ++i) names.names.emplace_back(Row(result, i).bytes(0));
    return names;
  }
  Result<Answer> operator()(const request::CountCaller&) const {
    const Row row(result, 0);
    return answer::CallerCount{static_cast<std::uint64_t>(row.integer(0)),
                               static_cast<std::uint64_t>(row.integer(1))};
  }
  Result<Answer> operator()(const request::AdvanceGenerations&) const { return answer::Done{}; }
  Result<Answer> operator()(const request::AcceptTime&) const { return answer::Done{}; }
  Result<Answer> operator()(const request::PickWorkflows&) const { return read_workflows(result); }
  Result<Answer> operator()(const request::ReadWorkflow&) const { return read_workflows(result); }
  Result<Answer> operator()(const request::AdvanceWorkflow&) const {
    return read_advanced(result, busy);
  }
  Result<Answer> operator()(const request::ResumeWorkflow&) const {
    return read_advanced(result, busy);
  }
  Result<Answer> operator()(const request::CountWorkflows&) const {
    return read_workflow_counts(result);
  }

 private:
  Result<Answer> moved() const {
    const Row row(result, 0);
    return answer::Moved{static_cast<std::size_t>(row.integer(0)),
                         static_cast<std::size_t>(row.integer(1)), row.boolean(2)};
  }
};

}  // namespace

std::string step_columns_of_one(const std::string& from) {
  return "select 1, x.decision, x.takeover, x.repeated, x.lease_left, x.condition, "
         "x.contradicts, x.at, " +
         record_columns("(x.r)") + " from " + from + " x";
}

Single single_statements(const Request& request, const Machine& machine, Duration audit_retention) {
  return std::visit(Build{machine, audit_retention}, request);
}

Result<Answer> read_single(const Request& request, const pg_result* result, bool& busy) {
  busy = false;
  return std::visit(Read{result, busy}, request);
}

}  // namespace einmal::postgres
