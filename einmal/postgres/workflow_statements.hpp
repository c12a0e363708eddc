#pragma once

#include "einmal/postgres/statements.hpp"

struct pg_result;

/// The requests about workflows as statements, and rows as their answers.
namespace einmal::postgres {

Single workflow_statements(const request::StartWorkflow& start, const Machine& machine);
Single workflow_statements(const request::PickWorkflows& pick, const Machine& machine);
Single workflow_statements(const request::AdvanceWorkflow& advance, const Machine& machine);
Single workflow_statements(const request::ReadWorkflow& read, const Machine& machine);
Single workflow_statements(const request::ResumeWorkflow& resume, const Machine& machine);
Single workflow_statements(const request::CountWorkflows& count, const Machine& machine);

Result<Answer> read_workflows(const pg_result* result);
Result<Answer> read_workflow_counts(const pg_result* result);
/// busy: somebody holds the lock of the scope, nothing was changed.
Result<Answer> read_advanced(const pg_result* result, bool& busy);

/// Select list of an einmal.step named x, as read_steps has it for one command.
std::string step_columns_of_one(const std::string& from);

}  // namespace einmal::postgres
