#include "einmal/gateway/cors.hpp"

#include <algorithm>

namespace einmal::gateway {

namespace {

constexpr std::string_view always_exposed =
    "Idempotency-Status, Idempotent-Replayed, Idempotency-Expires, Idempotency-Effect, "
    "Preference-Applied, Location, Retry-After";

bool allows(const CorsConfig& cors, std::string_view origin) {
  return !origin.empty() &&
         std::any_of(cors.origins.begin(), cors.origins.end(), [&](const std::string& allowed) {
           return allowed == "*" || allowed == origin;
         });
}

bool is_cors_line(const http::HeaderLine& line) {
  return http::istarts_with(line.name, "Access-Control-");
}

void add_origin(const CorsConfig& cors, std::string_view origin, http::HeaderLines& lines) {
  const bool everybody = std::count(cors.origins.begin(), cors.origins.end(), "*") != 0;
  lines.add("Access-Control-Allow-Origin", everybody ? "*" : origin);
  if (cors.credentials && !everybody) lines.add("Access-Control-Allow-Credentials", "true");
}

template <class Names>
void join(std::string& list, const Names& names) {
  for (const auto& name : names) list.append(list.empty() ? "" : ", ").append(name);
}

}  // namespace

std::optional<http::ResponseHead> answer_preflight(const Settings& settings,
                                                   const http::RequestHead& request,
                                                   std::string_view path) {
  const auto& cors = settings.config.cors;
  const auto wanted = request.headers.first("Access-Control-Request-Method");
  const auto origin = request.headers.first("Origin");
  if (!cors || request.method != "OPTIONS" || !wanted || !origin) return std::nullopt;
  const Matched matched = settings.match(*wanted, path);
  if (!matched) return std::nullopt;

  http::ResponseHead head;
  head.status = 204;
  head.headers.add("Cache-Control", "no-store");
  head.headers.add("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
  if (!allows(*cors, *origin)) return head;
  add_origin(*cors, *origin, head.headers);
  std::string methods;
  join(methods, cors->methods);
  head.headers.add("Access-Control-Allow-Methods",
                   cors->methods.empty() ? std::string(*wanted) : methods);
  const auto& keys = matched.operation->keys;
  std::string headers = keys.header + ", Content-Type, Prefer";
  join(headers, keys.aliases);
  join(headers, cors->headers);
  head.headers.add("Access-Control-Allow-Headers", headers);
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(cors->max_age);
  head.headers.add("Access-Control-Max-Age", std::to_string(age.count()));
  return head;
}

void write_cors(const CorsConfig& cors, std::string_view origin, http::HeaderLines& answer) {
  answer.remove_if(is_cors_line);
  if (!answer.has_token("Vary", "Origin")) answer.add("Vary", "Origin");
  if (!allows(cors, origin)) return;
  add_origin(cors, origin, answer);
  std::string exposed(always_exposed);
  join(exposed, cors.expose);
  answer.add("Access-Control-Expose-Headers", exposed);
}

void keep_own_origin(std::string_view origin, http::HeaderLines& stored) {
  const auto allowed = stored.first("Access-Control-Allow-Origin");
  if (allowed && (*allowed == "*" || (!origin.empty() && *allowed == origin))) return;
  stored.remove_if(is_cors_line);
}

}  // namespace einmal::gateway
