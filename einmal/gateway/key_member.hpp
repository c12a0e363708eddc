#pragma once

#include <string>

#include "einmal/base/bytes.hpp"
#include "einmal/http/key_field.hpp"

namespace einmal::gateway {

/// The key in the member of a JSON body that `pointer` (RFC 6901) names. Absent: no JSON, or no
/// such member (null counts as none). Invalid: it is there and is no string that can be a key.
http::KeyFound find_member_key(BytesView body, const std::string& pointer);

}  // namespace einmal::gateway
