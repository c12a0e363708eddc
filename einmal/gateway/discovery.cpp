#include "einmal/gateway/discovery.hpp"

#include "einmal/core/scope.hpp"
#include "einmal/gateway/json_writer.hpp"

namespace einmal::gateway {

namespace {

std::string_view text(InFlight policy) {
  switch (policy) {
    case InFlight::reject:
      return "reject";
    case InFlight::wait:
      return "wait";
    case InFlight::operation:
      return "operation";
  }
  return {};
}

void describe(JsonWriter& json, const OperationConfig& operation, std::string_view method,
              std::string_view path) {
  json.begin_object();
  json.member("operation").text(operation.name.empty() ? "*" : operation.name);
  if (!operation.title.empty()) json.member("title").text(operation.title);
  json.member("method").text(method);
  json.member("path").text(path);
  json.member("key").begin_object();
  json.member("required").boolean(operation.key.required);
  json.member("header").text(operation.key.header);
  json.member("aliases").begin_array();
  for (const auto& alias : operation.key.aliases) json.text(alias);
  json.end_array();
  if (operation.key.member) json.member("body_member").text(*operation.key.member);
  json.member("max_length").number(max_key_bytes);
  json.member("characters").text("%x21-7E");
  json.end_object();
  json.member("in_flight").text(text(operation.in_flight));
  if (operation.in_flight == InFlight::wait) json.member("wait").text(iso8601(operation.wait));
  json.member("retention").text(iso8601(operation.policies.retention));
  const bool refuses = operation.policies.after_expiry == AfterExpiry::refuse;
  json.member("after_expiry").text(refuses ? "refuse" : "new");
  if (refuses) json.member("tombstone").text(iso8601(operation.policies.tombstone));
  json.member("max_request_body").number(operation.max_request_body);
  json.end_object();
}

}  // namespace

std::string iso8601(Duration duration) {
  using namespace std::chrono;
  const auto us = duration.count();
  if (us % duration_cast<microseconds>(hours(24)).count() == 0 && us != 0)
    return "P" + std::to_string(us / duration_cast<microseconds>(hours(24)).count()) + "D";
  if (us % duration_cast<microseconds>(hours(1)).count() == 0 && us != 0)
    return "PT" + std::to_string(us / duration_cast<microseconds>(hours(1)).count()) + "H";
  if (us % 60'000'000 == 0 && us != 0) return "PT" + std::to_string(us / 60'000'000) + "M";
  std::string text = "PT" + std::to_string(us / 1'000'000);
  if (us % 1'000'000 != 0) {
    std::string fraction = std::to_string(1'000'000 + us % 1'000'000).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    text += "." + fraction;
  }
  return text + "S";
}

std::string discovery_document(const GatewayConfig& config) {
  JsonWriter json;
  json.begin_object();
  json.member("operations").begin_array();
  for (const auto& operation : config.operations)
    describe(json, operation, operation.match.method, operation.match.path);
  if (config.operations.empty()) {
    for (const auto* method : {"POST", "PATCH"}) describe(json, config.built_in, method, "*");
  }
  json.end_array();
  if (config.documentation) json.member("documentation").text(*config.documentation);
  json.end_object();
  return json.out() + "\n";
}

}  // namespace einmal::gateway
