#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "einmal/fingerprint/canonical_writer.hpp"

namespace einmal {

/// A field value of the shape `value; name=value; ...` in canonical spelling: value and parameter
/// names in lower case, quotes removed, parameters sorted by name.
struct Parameterised {
  std::string value;
  std::vector<std::pair<std::string, std::string>> parameters;

  const std::string* find(std::string_view name) const;
  void remove(std::string_view name);
  void write(CanonicalWriter& out) const;
};

/// Content-Type (RFC 9110, 8.3). Values of `charset` in lower case, utf8 as utf-8, which is
/// dropped where it says nothing: JSON and form bodies. Nothing if it is malformed or repeats a
/// parameter.
std::optional<Parameterised> parse_media_type(std::string_view text);

/// Content-Disposition (RFC 6266, RFC 7578). Backslashes in quoted values stay as they are, since
/// senders do not agree on what they mean. Nothing if it is malformed or repeats a parameter.
std::optional<Parameterised> parse_disposition(std::string_view text);

/// application/json, or any type with the suffix +json (RFC 6839), in UTF-8.
bool is_json(const Parameterised& media_type);
bool is_form(const Parameterised& media_type);
bool is_multipart(const Parameterised& media_type);

/// ASCII lower case.
std::string lower_case(std::string_view text);

}  // namespace einmal
