#pragma once

#include <optional>
#include <string_view>

#include "einmal/gateway/settings.hpp"
#include "einmal/http/head.hpp"

/// What browsers may read across origins (Fetch standard, "HTTP CORS protocol").

namespace einmal::gateway {

/// The answer to a preflight for a method and path that an operation matches; nothing if the
/// request is none, or no operation is meant, or [cors] is not configured.
std::optional<http::ResponseHead> answer_preflight(const Settings& settings,
                                                   const http::RequestHead& request,
                                                   std::string_view canonical_path);

/// Replaces every Access-Control-* line by ours for this origin, with `Vary: Origin`.
void write_cors(const CorsConfig& cors, std::string_view origin, http::HeaderLines& answer);

/// Without [cors]: of a stored answer, Access-Control-* lines go only to the origin they were made
/// for.
void keep_own_origin(std::string_view origin, http::HeaderLines& stored);

}  // namespace einmal::gateway
