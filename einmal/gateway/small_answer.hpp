#pragma once

#include <string>

#include "einmal/http/head.hpp"

namespace einmal::gateway {

/// A whole answer to a question of the gateway's own.
struct SmallAnswer {
  http::ResponseHead head;
  std::string body;
};

}  // namespace einmal::gateway
