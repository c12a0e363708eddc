#pragma once

#include <string>
#include <string_view>

namespace einmal::http {

/// Appends `text` as a JSON string with its quotation marks. Always valid JSON: what is not UTF-8
/// becomes U+FFFD, one for each byte that does not belong to a character.
void append_json_string(std::string& out, std::string_view text);

}  // namespace einmal::http
