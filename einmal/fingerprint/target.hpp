#pragma once

#include <string>
#include <string_view>

/// Canonical spelling of request targets: one definition for route matching, operation names and
/// fingerprints. The table of what is equal stands in docs/formats/fingerprint.md.

namespace einmal {

/// A request target taken apart, nothing decoded. Views into the target.
struct TargetParts {
  std::string_view authority;  ///< Of an absolute-form target; otherwise empty.
  std::string_view path;       ///< Empty only for an absolute-form target without a path.
  std::string_view query;      ///< Behind the first `?`; empty when there is none.
};
TargetParts split_target(std::string_view target);

/// The canonical path of a request target or path (a query and an absolute form's authority are cut
/// off): escapes of unreserved characters decoded, other escapes in upper-case hex, bytes outside
/// visible ASCII escaped, dot segments removed (RFC 3986, 5.2.4), then repeated and trailing
/// slashes dropped. Case is kept, `%2F` stays, a `%` that begins no escape becomes `%25`. A target
/// that is no path
/// (`*`, authority-form) is returned as it came.
std::string canonical_path(std::string_view target);

/// The canonical text of a query, or of an application/x-www-form-urlencoded body: pairs split at
/// `&`, empty ones dropped, escapes and `+` decoded and encoded anew in one spelling, sorted by
/// name, those of equal name in the order in which they came. `a` and `a=` differ.
std::string canonical_query(std::string_view query);

/// Lower case, without an empty port, `:80` and `:443`. (The scheme is not part of a fingerprint:
/// the same request over http and https is the same.)
std::string canonical_authority(std::string_view authority);

}  // namespace einmal
