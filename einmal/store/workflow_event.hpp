#pragma once

#include <optional>

#include "einmal/store/store.hpp"

/// For drivers that decide in C++: what an AdvanceWorkflow means for the row's record.
namespace einmal {

/// The event that happens to the record of `row`; nothing: none, or `row` was staged and has none.
inline std::optional<Event> record_event(const WorkflowRow& row,
                                         const request::WorkflowNext& next) {
  if (row.owner.is_nil()) return std::nullopt;
  if (const auto* finish = std::get_if<request::FinishWorkflow>(&next))
    return event::Settle{finish->outcome, row.generation, row.owner, finish->result, true};
  if (std::holds_alternative<request::ReleaseWorkflow>(next))
    return event::Release{row.generation, row.owner};
  if (std::holds_alternative<request::StopWorkflow>(next))
    return event::MarkUncertain{row.generation, row.owner, UncertainCause::outcome_unknown, {}};
  return std::nullopt;
}

/// Whether the work of `row` may still settle its record: nobody else did.
inline bool is_open_for(const WorkflowRow& row, const std::optional<Record>& record) {
  return record && record->generation == row.generation && record->owner == row.owner &&
         (record->state == State::processing || record->state == State::uncertain);
}

/// Whether the row is removed.
inline bool ends_row(const request::WorkflowNext& next) {
  return std::holds_alternative<request::FinishWorkflow>(next) ||
         std::holds_alternative<request::ReleaseWorkflow>(next);
}

}  // namespace einmal
