#include <algorithm>
#include <map>

#include "einmal/store/check_request.hpp"
#include "einmal/store/memory.hpp"
#include "einmal/store/workflow_event.hpp"

/// The rows of workflows in a memory store.
namespace einmal {

bool MemoryStore::is_due(const Workflow& workflow, const Now& now) {
  return workflow.until.boot != now.boot_id || workflow.until.end <= now.boot;
}

Answer MemoryStore::on(const request::StartWorkflow& start, const Now& now) {
  Answer answer = on(request::Transition{start.scope, start.claim, start.profile, {}}, now);
  const auto* execute = std::get_if<decision::Execute>(&std::get<Decision>(answer));
  if (!execute) return answer;
  const Record& record = execute->record;
  Workflow workflow{{record.operation_id,
                     start.scope,
                     start.definition,
                     {},
                     start.input,
                     {},
                     0,
                     false,
                     record.generation,
                     record.owner},
                    {},
                    {now.boot, now.boot_id}};
  workflows_.emplace(record.operation_id, std::move(workflow));  // unless it is there
  return answer;
}

Answer MemoryStore::on(const request::PickWorkflows& pick, const Now& now) {
  std::vector<Workflow*> due;
  for (auto& [id, workflow] : workflows_) {
    const bool wanted = std::find(pick.definitions.begin(), pick.definitions.end(),
                                  workflow.row.definition) != pick.definitions.end();
    if (wanted && !workflow.row.stopped && is_due(workflow, now)) due.push_back(&workflow);
  }
  const auto longest_first = [&](const Workflow* a, const Workflow* b) {
    const bool a_here = a->until.boot == now.boot_id, b_here = b->until.boot == now.boot_id;
    if (a_here != b_here) return b_here;
    return a->until.end < b->until.end;
  };
  std::stable_sort(due.begin(), due.end(), longest_first);
  due.resize(std::min(due.size(), bounded(pick.limit)));
  answer::Workflows picked;
  for (Workflow* workflow : due) {
    workflow->worker = pick.worker;
    workflow->until = {now.boot + pick.lease, now.boot_id};
    ++workflow->row.fence;
    picked.rows.push_back(workflow->row);
  }
  std::sort(picked.rows.begin(), picked.rows.end(),
            [](const WorkflowRow& a, const WorkflowRow& b) { return a.id < b.id; });
  return picked;
}

Answer MemoryStore::on(const request::AdvanceWorkflow& advance, const Now& now) {
  const auto found = workflows_.find(advance.id);
  if (found == workflows_.end()) return answer::Advanced::lost;
  Workflow& workflow = found->second;
  if (workflow.row.stopped || workflow.worker != advance.worker ||
      workflow.row.fence != advance.fence)
    return answer::Advanced::lost;
  auto outcome = answer::Advanced::done;
  if (const auto event = record_event(workflow.row, advance.next)) {
    const Decision decided = step(workflow.row.scope, *event, {}, now);
    if (std::holds_alternative<decision::Lost>(decided)) outcome = answer::Advanced::superseded;
  }
  for (const request::StagedWorkflow& staged : advance.staged) {
    Workflow added{{staged.id,
                    workflow.row.scope,
                    staged.definition,
                    staged.name,
                    staged.input,
                    {},
                    0,
                    false,
                    {},
                    {}},
                   {},
                   {now.boot, now.boot_id}};
    workflows_.emplace(staged.id, std::move(added));
  }
  if (ends_row(advance.next) || outcome == answer::Advanced::superseded) {
    workflows_.erase(found);
    return outcome;
  }
  workflow.row.journal += advance.append;
  if (std::holds_alternative<request::StopWorkflow>(advance.next)) workflow.row.stopped = true;
  if (const auto* hold = std::get_if<request::HoldWorkflow>(&advance.next))
    workflow.until = {now.boot + hold->lease, now.boot_id};
  if (const auto* delay = std::get_if<request::DelayWorkflow>(&advance.next)) {
    workflow.worker = {};
    workflow.until = {now.boot + delay->delay, now.boot_id};
  }
  return outcome;
}

Answer MemoryStore::on(const request::ReadWorkflow& read, const Now&) {
  answer::Workflows rows;
  const auto found = workflows_.find(read.id);
  if (found != workflows_.end()) rows.rows.push_back(found->second.row);
  return rows;
}

Answer MemoryStore::on(const request::ResumeWorkflow& resume, const Now& now) {
  const auto found = workflows_.find(resume.id);
  if (found == workflows_.end()) return answer::Advanced::lost;
  Workflow& workflow = found->second;
  if (!workflow.row.stopped || workflow.row.fence != resume.fence) return answer::Advanced::lost;
  const auto record = record_of(workflow.row.scope);
  if (!workflow.row.owner.is_nil() && !is_open_for(workflow.row, record)) {
    workflows_.erase(found);
    return answer::Advanced::superseded;
  }
  workflow.row.stopped = false;
  workflow.row.journal += resume.append;
  workflow.worker = {};
  workflow.until = {now.boot, now.boot_id};
  return answer::Advanced::done;
}

Answer MemoryStore::on(const request::CountWorkflows&, const Now& now) {
  std::map<std::string, answer::WorkflowCounts::OfDefinition> counts;
  for (const auto& [id, workflow] : workflows_) {
    auto& of = counts[workflow.row.definition];
    ++of.rows;
    if (workflow.row.stopped) {
      ++of.stopped;
    } else if (is_due(workflow, now)) {
      ++of.due;
    }
  }
  answer::WorkflowCounts answer;
  for (auto& [definition, of] : counts) {
    of.definition = definition;
    answer.definitions.push_back(of);
  }
  return answer;
}

}  // namespace einmal
