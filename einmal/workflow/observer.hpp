#pragma once

#include <array>
#include <string_view>

#include "einmal/core/record.hpp"

namespace einmal::workflow {

/// The moments of a worker's run, named, so that tests can stop or kill a process at each and
/// metrics can count them.
enum class Point : unsigned char {
  picked,           ///< A row is leased.
  local_committed,  ///< A local step and its recovery point are durable in the caller's database.
  intent_durable,   ///< An external step is about to run.
  call_ended,       ///< It said something; nothing of it is durable.
  result_durable,   ///< The recovery point of a step is in the store.
  doubt_durable,    ///< A step is in doubt, durably.
  delayed,          ///< Given back until later.
  stopped,          ///< In `uncertain`, for a person.
  finishing,        ///< Every step is done; the record is not settled yet.
  finished,         ///< The record is settled, the row gone.
  lost,             ///< Somebody else holds the row, or settled the record.
};
inline constexpr std::array all_points{Point::picked,
                                       Point::local_committed,
                                       Point::intent_durable,
                                       Point::call_ended,
                                       Point::result_durable,
                                       Point::doubt_durable,
                                       Point::delayed,
                                       Point::stopped,
                                       Point::finishing,
                                       Point::finished,
                                       Point::lost};

std::string_view name(Point point);

/// Called on the worker's thread.
class Observer {
 public:
  virtual ~Observer() = default;
  /// `step` is empty where no step is meant.
  virtual void at(Point /*point*/, const OperationId& /*id*/, std::string_view /*step*/) {}
};

/// Does nothing.
Observer& no_workflow_observer();

}  // namespace einmal::workflow
