#pragma once

#include <string>

namespace einmal::test {

/// Fresh books: what `--ledger` is told.
std::string new_books(const std::string& directory);

}  // namespace einmal::test
