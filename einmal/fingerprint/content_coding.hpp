#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/bytes.hpp"
#include "einmal/http/head.hpp"

namespace einmal {

/// The codings of a body in the order in which they were applied: the Content-Encoding lines' list
/// in lower case, x-gzip as gzip, without identity.
std::vector<std::string> content_codings(const http::HeaderLines& headers);

enum class Decoding : std::uint8_t {
  decoded,    ///< `out` holds the body.
  as_sent,    ///< Unknown or more than four codings, or not what the coding says: compare as sent.
  too_large,  ///< It decodes to more than the limit.
};

/// Undoes gzip (all members), deflate (zlib format, or bare as some senders have it) and zstd (all
/// frames; windows up to 8 MiB, RFC 9659). Holds two stages of
/// at most `limit` bytes.
Decoding decode_body(const std::vector<std::string>& codings, BytesView body, std::size_t limit,
                     Bytes& out);

/// The body in one coding, gzip or zstd, at the fastest level. decode_body gives it back to the
/// byte.
Bytes encode_body(std::string_view coding, BytesView body);

}  // namespace einmal
