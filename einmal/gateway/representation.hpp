#pragma once

#include "einmal/base/bytes.hpp"
#include "einmal/http/head.hpp"

namespace einmal::gateway {

/// Fits an answer whose whole body is here to a client that sent these request lines.
///
/// * A coded body is left as it is for a client that accepts its Content-Encoding, and decoded for
///   one that does not. False: the coding cannot be undone; `headers` and `body` are unchanged.
/// * With `may_compress`, an uncoded body of 1 KiB to 256 KiB of a media type that is text is coded
///   by zstd or gzip for a client that prefers this to identity. Never where the answer says
///   `no-transform`, is a part (206), or carries a digest or signature of its bytes.
///
/// Decoded, the body is the stored one to the byte. Where the bytes became others, a strong ETag
/// becomes a weak one (RFC 9110 section 8.8.1); wherever they could have, Vary names
/// Accept-Encoding (section 12.5.5). `body` is made to view `changed` where the bytes became
/// others. Content-Length is the caller's.
bool fit_to_client(const http::HeaderLines& request, int status, bool may_compress,
                   http::HeaderLines& headers, BytesView& body, Bytes& changed);

}  // namespace einmal::gateway
