#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "einmal/fingerprint/canonical_writer.hpp"

namespace einmal {

/// One part of a multipart body: its header lines as they came, and its content.
struct MultipartPart {
  std::vector<std::pair<std::string_view, std::string_view>> headers;
  BytesView content;
};

/// Takes a multipart body (RFC 2046, 5.1) apart; the views point into `body`. A delimiter is a
/// whole line: CRLF, two hyphens, the boundary, two more hyphens for the last one, blanks, CRLF.
/// Text that only begins like one is content. Preamble and epilogue are dropped. Nothing if the
/// boundary is not 1 to 70 characters, a delimiter is missing or a part's head is malformed.
std::optional<std::vector<MultipartPart>> parse_multipart(BytesView body,
                                                          std::string_view boundary);

/// The parts without the boundary: for each its header fields except Content-Length, and its
/// content.
void write_multipart(CanonicalWriter& out, const std::vector<MultipartPart>& parts);

}  // namespace einmal
