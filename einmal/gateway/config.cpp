#include "einmal/gateway/config.hpp"

namespace einmal {

OperationConfig built_in_operation() {
  OperationConfig operation;
  operation.key.required = false;
  operation.in_flight = InFlight::wait;
  operation.wait = seconds(5);
  return operation;
}

}  // namespace einmal
