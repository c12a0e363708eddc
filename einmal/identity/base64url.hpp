#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace einmal::identity {

/// The bytes that `text` spells in base64url without padding (RFC 7515 section 2), strictly: no
/// other character, no bits left over; nothing otherwise.
std::optional<std::string> from_base64url(std::string_view text);
std::string to_base64url(std::string_view bytes);

}  // namespace einmal::identity
