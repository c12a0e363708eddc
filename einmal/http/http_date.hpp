#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "einmal/base/clock.hpp"

namespace einmal::http {

/// "Sun, 06 Nov 1994 08:49:37 GMT" (IMF-fixdate, RFC 9110 section 5.6.7), rounded down to the
/// second. For years 0..9999.
std::string imf_fixdate(WallTime time);

/// Any of the three forms that RFC 9110 section 5.6.7 asks a recipient to accept (IMF-fixdate,
/// RFC 850, asctime). The name of the day is not checked. `now` places a two-digit year: never more
/// than 50 years ahead. Nothing if it is no such date.
std::optional<WallTime> parse_http_date(std::string_view text, WallTime now);

/// How long `Retry-After` (RFC 9110 section 10.2.3) asks to wait from `now` on: seconds or a date.
/// A date in the past is zero; more than a day is cut to a day; nonsense is nothing.
std::optional<Duration> parse_retry_after(std::string_view value, WallTime now);

}  // namespace einmal::http
