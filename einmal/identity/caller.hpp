#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "einmal/base/error.hpp"
#include "einmal/http/head.hpp"
#include "einmal/identity/network.hpp"

/// Who is asking. Sources judge a request head, the peer's address and its certificate; they open
/// no sockets and do not block. What must be asked elsewhere (auth-request) they describe, and the
/// gateway asks.

namespace einmal::identity {

/// What is known of the connection a request came over.
struct Peer {
  IpAddress address;
  std::string certificate;  ///< DER of the verified client certificate; empty without one.
};

/// The request is that of this account: a stable identity, never a credential. 1..1024 bytes.
struct Caller {
  std::string account;
};

/// There is no valid identity in the request. The same for known, unknown and foreign keys.
struct NoCaller {
  int status = 401;       ///< 401 with a challenge, 403 where the client cannot give one.
  std::string challenge;  ///< WWW-Authenticate; empty with 403.
  std::string detail;     ///< For the problem's detail; contains nothing the client sent.
};

/// The source cannot judge now (its keys cannot be read, its service does not answer): 503.
struct CannotTell {
  std::string detail;
};

/// Ask there first, with the request's credentials; then call `judge` with the answer.
struct AskFirst {
  std::string url;
};

using Verdict = std::variant<Caller, NoCaller, CannotTell, AskFirst>;

/// One configured source. Immutable; usable from one thread at a time unless it says otherwise.
class CallerSource {
 public:
  virtual ~CallerSource() = default;

  virtual Verdict identify(const http::RequestHead& head, const Peer& peer) = 0;
  /// After AskFirst: what the answer means. Never AskFirst again.
  virtual Verdict judge(const http::ResponseHead& answer);
  /// Takes out of `headers` what only a trusted hop may say and this peer is not; both spellings,
  /// with hyphen and with underscore. Done on every request, matched or not.
  virtual void strip(http::HeaderLines& headers, const Peer& peer) const;
};

/// `header:NAME`: the account name that a hop in `trusted_peers` set. Errors: invalid, naming what
/// is wrong: a name that is no field name, one that carries credentials, a bad network.
Result<std::unique_ptr<CallerSource>> header_source(std::string_view name,
                                                    const std::vector<std::string>& trusted_peers);

/// `fixed:NAME`: everybody is this account; whoever can reach the listener is let in. Errors:
/// invalid (empty or too long).
Result<std::unique_ptr<CallerSource>> fixed_source(std::string_view account);

/// Whether lines of that name carry credentials (Authorization, Cookie, X-Api-Key ...): those
/// rotate and are secret, so they never name a caller.
bool is_credential_header(std::string_view name);

}  // namespace einmal::identity
