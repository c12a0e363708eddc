#pragma once

#include <optional>
#include <string_view>

#include "einmal/base/clock.hpp"

namespace einmal::client {

/// An ISO 8601 duration of weeks, days, hours, minutes and seconds ("P7D", "PT1H30M", "PT0.5S").
/// Nothing for years and months, which have no fixed length, and for nonsense.
std::optional<Duration> parse_iso8601_duration(std::string_view text);

/// How long the server keeps results for this method and path, by its discovery document: the
/// shortest `retention` of the operations that match. Nothing if none does.
std::optional<Duration> published_retention(std::string_view document, std::string_view method,
                                            std::string_view path);

}  // namespace einmal::client
