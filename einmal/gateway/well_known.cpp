#include "einmal/gateway/well_known.hpp"

#include "einmal/gateway/answers.hpp"

namespace einmal::gateway {

namespace {

constexpr std::string_view discovery_path = "/.well-known/idempotency";
constexpr std::string_view own_paths = "/.well-known/einmal/";

}  // namespace

bool is_well_known(std::string_view path) {
  return path == discovery_path || path.substr(0, own_paths.size()) == own_paths;
}

Async<> answer_well_known(ClientConnection& client) {
  http::Problem problem(http::Reason::not_found);
  problem.keyed = false;
  co_await answer_problem(client, problem);
}

}  // namespace einmal::gateway
