#pragma once

#include <string>
#include <string_view>

#include "command_words.hpp"

namespace einmal::programs {

/// The manual page einmal(1), in troff's man macros: every command and option there is.
std::string manual_page(const CommandWords& program, std::string_view version);

}  // namespace einmal::programs
