#pragma once

#include <string_view>

#include "einmal/http/head.hpp"

namespace einmal::http {

/// What a parsed request head must still satisfy: Host (RFC 9112 section 3.2) and the form of the
/// target (section 3.3). Reduces an absolute-form to origin-form. Returns why it is refused, or an
/// empty view.
std::string_view check_request(RequestHead& head);

}  // namespace einmal::http
