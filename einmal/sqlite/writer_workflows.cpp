#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include "einmal/sqlite/writer.hpp"
#include "einmal/store/check_request.hpp"
#include "einmal/store/workflow_event.hpp"

/// What the writer does with the rows of workflows. Records are changed through the same decisions
/// as everywhere.
namespace einmal::sqlite {

Result<Answer> Writer::on_workflow(Item& item) {
  const Request& request = item.command->request();
  if (const auto* start = std::get_if<request::StartWorkflow>(&request)) return on(item, *start);
  if (const auto* pick = std::get_if<request::PickWorkflows>(&request)) return on(*pick);
  if (const auto* advance = std::get_if<request::AdvanceWorkflow>(&request))
    return on(item, *advance);
  if (const auto* resume = std::get_if<request::ResumeWorkflow>(&request)) return on(item, *resume);
  if (const auto* read = std::get_if<request::ReadWorkflow>(&request)) {
    auto found = file_->workflows->find(read->id);
    if (!found) return pass_on(found);
    answer::Workflows rows;
    if (*found) rows.rows.push_back(std::move((*found)->row));
    return Answer(std::move(rows));
  }
  if (std::holds_alternative<request::CountWorkflows>(request)) {
    auto counts = file_->workflows->count(now_);
    if (!counts) return pass_on(counts);
    return Answer(std::move(*counts));
  }
  return failure(ErrorCode::internal, "sqlite store: a read came to the writer");
}

/// A write that failed half-way breaks the batch's transaction.
Result<Answer> Writer::written(Result<void> done, Answer answer) {
  wrote_ = true;
  if (done) return answer;
  broken_ = true;
  return pass_on(done);
}

Result<Answer> Writer::on(Item& item, const request::StartWorkflow& start) {
  item.digest = digests_.of(start.scope);
  request::Transition claim{start.scope, start.claim, start.profile, {}};
  auto answer = on(item, claim);
  if (!answer) return answer;
  const auto* execute = std::get_if<decision::Execute>(&std::get<Decision>(*answer));
  if (!execute) return answer;
  const Record& record = execute->record;
  KeptWorkflow workflow{{record.operation_id,
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
                        {now_.boot, now_.boot_id}};
  return written(file_->workflows->add(workflow), std::move(*answer));
}

Result<Answer> Writer::on(const request::PickWorkflows& pick) {
  const std::size_t limit = bounded(pick.limit);
  std::vector<KeptWorkflow> all;
  for (const std::string& definition : pick.definitions) {
    auto due = file_->workflows->due(definition, now_, limit);
    if (!due) return pass_on(due);
    std::move(due->begin(), due->end(), std::back_inserter(all));
  }
  const auto longest_due_first = [&](const KeptWorkflow& a, const KeptWorkflow& b) {
    const auto place = [&](const KeptWorkflow& each) {
      return std::tuple(each.until.boot == now_.boot_id, each.until.end, each.row.id);
    };
    return place(a) < place(b);
  };
  std::sort(all.begin(), all.end(), longest_due_first);
  const auto unique = [](const KeptWorkflow& a, const KeptWorkflow& b) {
    return a.row.id == b.row.id;
  };
  all.erase(std::unique(all.begin(), all.end(), unique), all.end());
  if (all.size() > limit) all.erase(all.begin() + static_cast<std::ptrdiff_t>(limit), all.end());
  answer::Workflows picked;
  for (KeptWorkflow& workflow : all) {
    workflow.worker = pick.worker;
    workflow.until = {now_.boot + pick.lease, now_.boot_id};
    ++workflow.row.fence;
    if (auto done = written(file_->workflows->update(workflow), answer::Done{}); !done)
      return pass_on(done);
    picked.rows.push_back(std::move(workflow.row));
  }
  std::sort(picked.rows.begin(), picked.rows.end(),
            [](const WorkflowRow& a, const WorkflowRow& b) { return a.id < b.id; });
  return Answer(std::move(picked));
}

Result<Answer> Writer::on(Item& item, const request::AdvanceWorkflow& advance) {
  auto found = file_->workflows->find(advance.id);
  if (!found) return pass_on(found);
  if (!*found || (*found)->row.stopped || (*found)->worker != advance.worker ||
      (*found)->row.fence != advance.fence)
    return Answer(answer::Advanced::lost);
  KeptWorkflow& workflow = **found;
  auto outcome = answer::Advanced::done;
  if (auto event = record_event(workflow.row, advance.next)) {
    item.digest = digests_.of(workflow.row.scope);
    request::Transition step{workflow.row.scope, std::move(*event), nullptr, {}};
    auto answer = on(item, step);
    if (!answer) return answer;
    if (std::holds_alternative<decision::Lost>(std::get<Decision>(*answer)))
      outcome = answer::Advanced::superseded;
  }
  for (const request::StagedWorkflow& staged : advance.staged) {
    const KeptWorkflow added{{staged.id,
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
                             {now_.boot, now_.boot_id}};
    if (auto done = written(file_->workflows->add(added), answer::Done{}); !done)
      return pass_on(done);
  }
  if (ends_row(advance.next) || outcome == answer::Advanced::superseded)
    return written(file_->workflows->erase(advance.id), outcome);
  workflow.row.journal += advance.append;
  workflow.row.stopped = std::holds_alternative<request::StopWorkflow>(advance.next);
  if (const auto* hold = std::get_if<request::HoldWorkflow>(&advance.next))
    workflow.until = {now_.boot + hold->lease, now_.boot_id};
  if (const auto* delay = std::get_if<request::DelayWorkflow>(&advance.next)) {
    workflow.worker = {};
    workflow.until = {now_.boot + delay->delay, now_.boot_id};
  }
  return written(file_->workflows->update(workflow), outcome);
}

Result<Answer> Writer::on(Item& item, const request::ResumeWorkflow& resume) {
  auto found = file_->workflows->find(resume.id);
  if (!found) return pass_on(found);
  if (!*found || !(*found)->row.stopped || (*found)->row.fence != resume.fence)
    return Answer(answer::Advanced::lost);
  KeptWorkflow& workflow = **found;
  if (!workflow.row.owner.is_nil()) {
    item.digest = digests_.of(workflow.row.scope);
    if (auto looked = find_row(item, workflow.row.scope); !looked) return pass_on(looked);
    const bool open = is_open_for(workflow.row, item.row->record);
    remember(item, workflow.row.scope);
    if (!open) return written(file_->workflows->erase(resume.id), answer::Advanced::superseded);
  }
  workflow.row.stopped = false;
  workflow.row.journal += resume.append;
  workflow.worker = {};
  workflow.until = {now_.boot, now_.boot_id};
  return written(file_->workflows->update(workflow), answer::Advanced::done);
}

}  // namespace einmal::sqlite
