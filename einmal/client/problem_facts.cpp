#include "einmal/client/problem_facts.hpp"

#include <boost/json.hpp>
#include <string_view>

namespace einmal::client {

namespace json = boost::json;

namespace {

constexpr std::size_t largest_problem = 64 * 1024;

std::optional<json::object> read_object(const Answer& answer) {
  const auto type = answer.headers.first("Content-Type").value_or("");
  if (type.find("json") == std::string_view::npos) return std::nullopt;
  if (answer.body.size() > largest_problem) return std::nullopt;
  boost::system::error_code broken;
  auto value = json::parse(answer.body, broken);
  if (broken || !value.is_object()) return std::nullopt;
  return std::move(value.as_object());
}

std::string text(const json::object& object, std::string_view name) {
  const auto* member = object.if_contains(name);
  const auto* found = member != nullptr ? member->if_string() : nullptr;
  return found != nullptr ? std::string(*found) : std::string();
}

std::optional<int> number(const json::object& object, std::string_view name) {
  const auto* member = object.if_contains(name);
  const auto* found = member != nullptr ? member->if_int64() : nullptr;
  if (found == nullptr || *found < 100 || *found > 999) return std::nullopt;
  return static_cast<int>(*found);
}

}  // namespace

ProblemFacts read_problem(const Answer& answer) {
  ProblemFacts facts;
  if (answer.status < 400) return facts;
  const auto object = read_object(answer);
  if (!object) return facts;
  const auto* member = object->if_contains("error");
  const auto* error = member != nullptr ? member->if_object() : nullptr;
  const json::object& about = error != nullptr ? *error : *object;
  facts.reason = text(about, "reason");
  facts.recorded_status = number(about, "recorded_status");
  if (error != nullptr) {
    facts.error_type = text(*error, "type");
    facts.error_code = text(*error, "code");
  }
  return facts;
}

std::string read_state(const Answer& answer) {
  const auto object = read_object(answer);
  return object ? text(*object, "state") : std::string();
}

}  // namespace einmal::client
