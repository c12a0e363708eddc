#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/core/record.hpp"
#include "einmal/http/head.hpp"
#include "einmal/http/key_field.hpp"

/// Which header lines go where: into the store, to the upstream, to the client. One place, so that
/// a line is either handled everywhere or nowhere.

namespace einmal::http {

/// Equal as field names to a reader that takes `_` for `-` (CGI, WSGI and their kin): whoever may
/// not say `X-Caller` may not say `X_Caller` either.
bool same_spoken_name(std::string_view a, std::string_view b);

/// Connection, Keep-Alive, TE, Trailer, Transfer-Encoding, Upgrade, Proxy-*.
bool is_hop_by_hop(std::string_view name);

/// Removes hop-by-hop lines and those that a Connection line names. A Connection line cannot name
/// away Host, Content-* or a key: they are meant for all recipients (RFC 9110 section 7.6.1).
void remove_hop_by_hop(HeaderLines& lines, const KeyNames& keys);

/// Whether a line of that name is never part of a stored result: hop-by-hop, what speaks of the one
/// transmission (Date, Age, Set-Cookie, Retry-After ...), what einmal says itself, Content-Length,
/// which is made anew.
bool is_never_stored(std::string_view name);

/// The lines of an answer that become part of its stored result, in their order. `deny`: further
/// names that the operator does not want stored.
HeaderLines stored_lines(const HeaderLines& answer, const std::vector<std::string>& deny);

/// How a request's lines change on their way to the upstream.
struct UpstreamRules {
  bool matched = false;  ///< An operation matched: method overrides go.
  bool keyed = false;    ///< And it carries a key: Expect goes, Accept-Encoding becomes identity.
  KeyNames keys;
  /// The header that names the caller, if there is one, and whether the peer may set it. Its other
  /// spelling goes in any case.
  std::optional<std::string> caller_header;
  bool caller_trusted = false;
};
/// Hop-by-hop lines and every `Einmal-*` go, in either spelling; Content-Length and Host stay.
void prepare_for_upstream(HeaderLines& lines, const UpstreamRules& rules);

/// How an answer's lines change on their way to the client. Hop-by-hop and `Einmal-*` go; on keyed
/// answers also what only einmal may say (Idempotency-*, Idempotent-Replayed).
void prepare_for_client(HeaderLines& lines, bool keyed);

/// Trailers that may travel on. Framing, routing, authentication, content headers, keys, caller
/// names and einmal's own are dropped (RFC 9110 section 6.5.1): they count in a head only.
void prepare_trailers(HeaderLines& trailers, const KeyNames& keys,
                      const std::optional<std::string>& caller_header);

/// `Idempotency-Status`: what a keyed answer is.
enum class IdempotencyStatus : std::uint8_t {
  executed,     ///< This request did the work.
  replayed,     ///< A stored result.
  resolved,     ///< A stored result that an operator or reconciler gave.
  in_progress,  ///< Another request owns the key.
  mismatch,     ///< The key was used with another request.
  uncertain,    ///< Nobody knows the outcome.
  released,     ///< The attempt ended without effect; the key is free.
  expired,      ///< A tombstone.
  unrecorded,   ///< The result could not be stored yet.
  unprotected,  ///< Passed through while the store failed (on_store_failure = "open").
  rejected,     ///< Refused before any claim.
};
std::string_view name(IdempotencyStatus status);

/// What stands on a keyed answer beside its status.
struct Marks {
  IdempotencyStatus status = IdempotencyStatus::executed;
  std::optional<WallTime> expires;  ///< Once settled.
  Effect effect = Effect::known;    ///< Of the stored result that is replayed.
};
/// Adds Idempotency-Status, Idempotency-Expires (rounded down), and on replays Idempotent-Replayed
/// and, where the effect is unknown, Idempotency-Effect.
void add_marks(HeaderLines& lines, const Marks& marks);

}  // namespace einmal::http
