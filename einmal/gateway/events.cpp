#include "einmal/gateway/events.hpp"

namespace einmal {

GatewayEvents& no_events() {
  static GatewayEvents events;
  return events;
}

}  // namespace einmal
