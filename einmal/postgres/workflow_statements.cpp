#include "einmal/postgres/workflow_statements.hpp"

#include <libpq-fe.h>

#include "einmal/postgres/record_row.hpp"
#include "einmal/store/check_request.hpp"

namespace einmal::postgres {

namespace {

constexpr const char* row_list =
    "id, definition, name, namespace, caller, operation, key, input, journal, fence, stopped, "
    "generation, owner";

void add_result(Parameters& parameters, const request::FinishWorkflow* finish) {
  if (!finish) {
    parameters.null(Type::int2).null(Type::int4).null(Type::bytes).null(Type::bytes);
    parameters.null(Type::int2).null(Type::int2).null(Type::int4).null(Type::bytes);
    return;
  }
  const StoredResult& result = finish->result;
  parameters.int2(static_cast<std::int16_t>(finish->outcome)).int4(result.status);
  parameters.bytes(result.headers).bytes(result.body);
  parameters.int2(static_cast<std::int16_t>(result.body_kept));
  parameters.int2(static_cast<std::int16_t>(result.effect));
  parameters.int4(result.representation_version);
  result.resource_id ? parameters.bytes(*result.resource_id) : parameters.null(Type::bytes);
}

Result<WorkflowRow> read_row(const Row& row) {
  const auto id = OperationId::from_bytes(row.bytes(0));
  auto scope = Scope::make(Bytes(row.bytes(3)), Bytes(row.bytes(4)), Bytes(row.bytes(5)),
                           Bytes(row.bytes(6)));
  if (!id || !scope)
    return failure(ErrorCode::corrupt, "postgres: einmal.workflow holds a scope that is none");
  return WorkflowRow{*id,
                     std::move(*scope),
                     Bytes(row.bytes(1)),
                     Bytes(row.bytes(2)),
                     Bytes(row.bytes(7)),
                     Bytes(row.bytes(8)),
                     static_cast<std::uint64_t>(row.integer(9)),
                     row.boolean(10),
                     Generation{static_cast<std::uint64_t>(row.optional_integer(11).value_or(0))},
                     OwnerToken::from_bytes(row.bytes(12)).value_or(OwnerToken())};
}

}  // namespace

Single workflow_statements(const request::StartWorkflow& start, const Machine& machine) {
  static const std::string sql = step_columns_of_one(
      "einmal.workflow_start($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, "
      "$16, $17)");
  Statement statement{"einmal_workflow_start", sql.c_str(), {}};
  const Policies& policies = start.claim.policies;
  Parameters& parameters = statement.parameters;
  parameters.uuid(machine.boot_id.bytes()).int8(machine.boot.time_since_epoch().count());
  parameters.bytes(start.scope.name_space()).bytes(start.scope.caller());
  parameters.bytes(start.scope.operation()).bytes(start.scope.key());
  parameters.bytes(profile_bytes(start.claim.fingerprint.profile));
  start.profile ? parameters.bytes(start.profile->definition) : parameters.null(Type::bytes);
  parameters.bytes(digest_bytes(start.claim.fingerprint.digest));
  parameters.int2(static_cast<std::int16_t>(policies.on_lease_expiry));
  parameters.interval(policies.retention);
  parameters.int2(static_cast<std::int16_t>(policies.after_expiry)).interval(policies.tombstone);
  parameters.uuid(start.claim.owner.bytes()).uuid(start.claim.operation_id.bytes());
  parameters.bytes(start.definition).bytes(start.input);
  return {{std::move(statement)}, true};
}

Single workflow_statements(const request::PickWorkflows& pick, const Machine&) {
  static const std::string sql =
      std::string("select ") + row_list + " from einmal.workflow_pick($1, $2, $3, $4)";
  Statement statement{"einmal_workflow_pick", sql.c_str(), {}};
  Array definitions(Type::bytes);
  for (const std::string& definition : pick.definitions) definitions.add(BytesView(definition));
  statement.parameters.uuid(pick.worker.bytes()).interval(pick.lease).add(definitions);
  statement.parameters.int4(static_cast<std::int32_t>(bounded(pick.limit)));
  return {{std::move(statement)}, true};
}

Single workflow_statements(const request::AdvanceWorkflow& advance, const Machine&) {
  Statement statement{"einmal_workflow_advance",
                      "select einmal.workflow_advance($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
                      "$11, $12, $13, $14, $15, $16, $17, $18)",
                      {}};
  Parameters& parameters = statement.parameters;
  parameters.uuid(advance.id.bytes()).uuid(advance.worker.bytes());
  parameters.int8(static_cast<std::int64_t>(advance.fence)).bytes(advance.append);
  Array ids(Type::uuid), definitions(Type::bytes), names(Type::bytes), inputs(Type::bytes);
  for (const request::StagedWorkflow& staged : advance.staged) {
    ids.add(staged.id.bytes());
    definitions.add(BytesView(staged.definition));
    names.add(BytesView(staged.name));
    inputs.add(BytesView(staged.input));
  }
  parameters.add(ids).add(definitions).add(names).add(inputs);
  parameters.int2(static_cast<std::int16_t>(advance.next.index() + 1));
  if (const auto* hold = std::get_if<request::HoldWorkflow>(&advance.next)) {
    parameters.interval(hold->lease);
  } else if (const auto* delay = std::get_if<request::DelayWorkflow>(&advance.next)) {
    parameters.interval(delay->delay);
  } else {
    parameters.null(Type::interval);
  }
  add_result(parameters, std::get_if<request::FinishWorkflow>(&advance.next));
  return {{std::move(statement)}, true};
}

Single workflow_statements(const request::ReadWorkflow& read, const Machine&) {
  static const std::string sql =
      std::string("select ") + row_list + " from einmal.workflow_read($1)";
  Statement statement{"einmal_workflow_read", sql.c_str(), {}};
  statement.parameters.uuid(read.id.bytes());
  return {{std::move(statement)}, false};
}

Single workflow_statements(const request::ResumeWorkflow& resume, const Machine&) {
  Statement statement{"einmal_workflow_resume", "select einmal.workflow_resume($1, $2, $3)", {}};
  statement.parameters.uuid(resume.id.bytes()).int8(static_cast<std::int64_t>(resume.fence));
  statement.parameters.bytes(resume.append);
  return {{std::move(statement)}, true};
}

Single workflow_statements(const request::CountWorkflows&, const Machine&) {
  return {{{"einmal_workflow_count",
            "select definition, row_count, due, stopped from einmal.workflow_count()",
            {}}},
          false};
}

Result<Answer> read_workflows(const pg_result* result) {
  answer::Workflows rows;
  for (int i = 0; i < PQntuples(result); ++i) {
    auto row = read_row(Row(result, i));
    if (!row) return pass_on(row);
    rows.rows.push_back(std::move(*row));
  }
  return rows;
}

Result<Answer> read_workflow_counts(const pg_result* result) {
  answer::WorkflowCounts counts;
  for (int i = 0; i < PQntuples(result); ++i) {
    const Row row(result, i);
    counts.definitions.push_back({Bytes(row.bytes(0)), static_cast<std::uint64_t>(row.integer(1)),
                                  static_cast<std::uint64_t>(row.integer(2)),
                                  static_cast<std::uint64_t>(row.integer(3))});
  }
  return counts;
}

Result<Answer> read_advanced(const pg_result* result, bool& busy) {
  const BytesView word = PQntuples(result) == 1 ? Row(result, 0).bytes(0) : BytesView();
  busy = word == "busy";
  if (word == "done") return answer::Advanced::done;
  if (word == "superseded") return answer::Advanced::superseded;
  if (word == "lost" || busy) return answer::Advanced::lost;
  return failure(ErrorCode::incompatible,
                 "postgres: the schema answers with a word that this version does not know; use "
                 "the einmal that migrated it");
}

}  // namespace einmal::postgres
