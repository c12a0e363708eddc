#pragma once

#include <string>

#include "einmal/store/store.hpp"

namespace einmal::testing {

/// Everything that an answer says, in one line, the kind of decision first ("execute takeover",
/// "lost contradicts", "in-progress"), times as they are. Two answers are equal exactly when their
/// descriptions are, but for two things a store may choose: the order of a list and byte counts.
std::string describe(const Result<Answer>& answer);
std::string describe(const Decision& decision);
std::string describe(const Record& record);

std::string_view name(State state);
std::string_view name(Condition condition);
std::string_view name(AuditEvent event);

}  // namespace einmal::testing
