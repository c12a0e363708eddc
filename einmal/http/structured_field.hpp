#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace einmal::http {

/// The content of a structured field that is an Item of type String (RFC 8941 section 4.2), with
/// any parameters read and dropped. Nothing for every other item and for what does not follow the
/// grammar to its last byte. As there, spaces around the item are passed over, tabs are not.
std::optional<std::string> parse_string_item(std::string_view field);

}  // namespace einmal::http
