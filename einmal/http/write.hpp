#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "einmal/http/head.hpp"

/// Messages as bytes. Framing is the caller's: these functions add no line of their own. Heads must
/// hold only what a parser let through or `is_token` and `is_field_value` allow.

namespace einmal::http {

/// Appends request line, field lines and the empty line, as HTTP/1.1.
void append_head(std::string& out, const RequestHead& head);
/// Appends status line, field lines and the empty line, as HTTP/1.1. An empty reason becomes the
/// status's own.
void append_head(std::string& out, const ResponseHead& head);

/// "Created" for 201; empty for a status without a registered phrase.
std::string_view reason_phrase(int status);

/// The size line that goes before a chunk's data. After the data goes `chunk_end`.
class ChunkHead {
 public:
  /// `size` must not be 0: that would end the body.
  explicit ChunkHead(std::uint64_t size);
  std::string_view view() const { return {text_.data() + at_, text_.size() - at_}; }

 private:
  std::array<char, 18> text_{};
  std::size_t at_;
};
inline constexpr std::string_view chunk_end = "\r\n";
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

/// Appends one whole chunk; nothing for empty data.
void append_chunk(std::string& out, std::string_view data);
/// Appends the last chunk with trailers.
void append_last_chunk(std::string& out, const HeaderLines& trailers);

}  // namespace einmal::http
