#pragma once

#include <string>

#include "einmal/base/error.hpp"

namespace einmal {

/// The bytes of a file, pipe or device. Errors: invalid - it cannot be opened or read to its end (a
/// directory cannot); the message names it and says why.
Result<std::string> read_file(const std::string& path);

}  // namespace einmal
