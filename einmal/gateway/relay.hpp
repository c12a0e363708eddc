#pragma once

#include <string>

#include "einmal/gateway/client_connection.hpp"
#include "einmal/gateway/upstream_pool.hpp"

namespace einmal::gateway {

/// The next step of the upstream's answer, reading as needed; each read has `patience`. The end of
/// the stream is a step too (complete or error); `timed_out` tells whether it was ours.
Async<http::Fed> next_step(UpstreamConnection& upstream, Duration patience, std::size_t read_size,
                           bool& timed_out);

enum class Relayed : std::uint8_t { whole, client_gone, upstream_failed };

/// Passes the body of the upstream's answer on as it comes, never holding more than one piece.
/// `out` is what leaves before it, together with the first piece: the head and what was read.
Async<Relayed> relay_body(ClientConnection& client, UpstreamConnection& upstream, std::string& out,
                          bool chunked, Duration patience);

}  // namespace einmal::gateway
