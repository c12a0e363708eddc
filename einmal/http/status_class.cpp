#include "einmal/http/status_class.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace einmal::http {

namespace {

constexpr std::array<std::pair<Outcome, std::string_view>, 4> names = {
    {{Outcome::completed, "completed"},
     {Outcome::failed, "failed"},
     {Outcome::released, "released"},
     {Outcome::uncertain, "uncertain"}}};

// A status releases only if its definition says that the operation was not begun. 503 is not among
// them: proxies send it for requests that were delivered.
std::vector<StatusClass> default_table() {
  std::vector<StatusClass> table;
  for (const int status : {307, 308, 400, 401, 403, 404, 405, 406, 407, 411, 412, 413, 414,
                           415, 416, 417, 421, 422, 423, 425, 426, 428, 429, 431, 451, 501}) {
    table.push_back({status, status, Outcome::released, Effect::known});
  }
  table.push_back({408, 408, Outcome::uncertain, Effect::known});
  table.push_back({500, 500, Outcome::failed, Effect::unknown});
  table.push_back({200, 399, Outcome::completed, Effect::known});
  table.push_back({400, 499, Outcome::failed, Effect::known});
  table.push_back({0, 999, Outcome::uncertain, Effect::known});
  return table;
}

}  // namespace

std::string_view name(Outcome outcome) {
  for (const auto& [value, text] : names) {
    if (value == outcome) return text;
  }
  return {};
}

std::optional<Outcome> parse_outcome(std::string_view text) {
  for (const auto& [value, known] : names) {
    if (known == text) return value;
  }
  return std::nullopt;
}

const std::vector<StatusClass>& status_table() {
  static const std::vector<StatusClass> table = default_table();
  return table;
}

Verdict classify(int status, const HeaderLines& answer, const OutcomeOverrides& overrides) {
  if (const auto said = answer.first("Einmal-Outcome")) {
    const auto outcome = answer.count("Einmal-Outcome") == 1 ? parse_outcome(*said) : std::nullopt;
    return {outcome.value_or(Outcome::uncertain), Effect::known, true};
  }
  if (const auto found = overrides.find(status); found != overrides.end()) {
    return {found->second, Effect::known, false};
  }
  for (const auto& row : status_table()) {
    if (row.first <= status && status <= row.last) return {row.outcome, row.effect, false};
  }
  return {};
}

}  // namespace einmal::http
