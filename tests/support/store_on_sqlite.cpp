#include "support/gateway.hpp"

namespace einmal::test {

std::string new_store(const std::string& directory) { return "sqlite:" + directory + "/einmal.db"; }

}  // namespace einmal::test
