#include "einmal/core/decide.hpp"

namespace einmal {

Step decide(const std::optional<Record>&, const Event&, const Now&) { return {}; }

}  // namespace einmal
