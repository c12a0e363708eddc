#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "einmal/core/record.hpp"
#include "einmal/core/scope.hpp"

namespace einmal {

/// Named points on the road of one execution, in order. Tests kill, stop or stall a process at each
/// of them; `all_points` is the list they walk, so that a new point without a test fails.
enum class Point : std::uint8_t {
  claim_submitted,    ///< The claim was handed to the store; not durable yet.
  claim_durable,      ///< This process owns the key.
  before_first_byte,  ///< The late-forward check passed; nothing was sent downstream.
  first_byte_sent,    ///< The kernel took the first byte of the request.
  request_sent,       ///< All of it.
  answer_started,     ///< The status line came.
  answer_complete,    ///< The whole answer is here; nothing is recorded.
  settle_submitted,   ///< The result was handed to the store; not durable yet.
  settle_durable,     ///< The result is durable; the client has seen nothing.
  before_answer,      ///< About to write to the client.
  answer_sent,        ///< The kernel took the whole answer.
};
inline constexpr std::array all_points{
    Point::claim_submitted, Point::claim_durable,    Point::before_first_byte,
    Point::first_byte_sent, Point::request_sent,     Point::answer_started,
    Point::answer_complete, Point::settle_submitted, Point::settle_durable,
    Point::before_answer,   Point::answer_sent};
std::string_view name(Point point);

/// What happened, for metrics and logs. Called on the engine's thread; must not block or throw.
/// Every function has an empty default, so an observer overrides what it needs.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void reached(Point, const Scope&, Generation) {}
};

/// Observes nothing.
Observer& no_observer();

}  // namespace einmal
