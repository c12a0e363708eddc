#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "einmal/base/bytes.hpp"
#include "einmal/base/error.hpp"
#include "einmal/core/record.hpp"
#include "einmal/http/head.hpp"

/// What makes two requests the same request: SHA-256 over a versioned canonical form, described
/// byte by byte in docs/formats/fingerprint.md. Equal digests under one profile mean the same
/// method, operation, authority, path, query, media type, semantic headers and body meaning.

namespace einmal {

/// Bound on what a coded body (Content-Encoding) may decode to, unless the options say otherwise.
inline constexpr std::size_t default_max_decoded_body = std::size_t{8} << 20;

/// What an operation declares about its requests. Everything but `max_decoded_body` enters the
/// digest and therefore the profile. Pointers are RFC 6901 JSON pointers into a JSON body; order
/// and repetition within a list never matter, but for the first of `hosts`.
struct FingerprintOptions {
  /// Request headers that change the meaning, added to If-Match and If-Unmodified-Since.
  std::vector<std::string> headers;
  /// Members (and what is below them) that do not count: present, absent and changed are the same.
  std::vector<std::string> ignore;
  /// When not empty: the only members that count. `ignore` still applies inside them.
  std::vector<std::string> only;
  /// Pointer -> JSON text of the value that an absent member has. Applies where the object that
  /// would contain the member is there; an explicit null is not absent.
  std::map<std::string, std::string> defaults;
  /// Compare JSON strings and names after Unicode normalisation form C.
  bool nfc = false;
  /// Authorities that mean the same server, the canonical one first.
  std::vector<std::string> hosts;
  /// A coded body that decodes to more bytes than this is Unusable.
  std::size_t max_decoded_body = default_max_decoded_body;
};

/// The algorithm version and every option that enters the digest. Digests compare only within one
/// profile. An immutable value, cheap to copy, usable from any thread.
class FingerprintProfile {
 public:
  /// Errors: invalid, naming the option: a malformed pointer, a default that is no usable JSON, a
  /// header that cannot be semantic (credentials, tracing, Accept*, framing), a host that is no
  /// authority.
  static Result<FingerprintProfile> make(FingerprintOptions options);

  /// The profile that `definition` (kept in the store) describes. Errors: incompatible if a newer
  /// version wrote it, corrupt if it is not a definition.
  static Result<FingerprintProfile> from_definition(
      BytesView definition, std::size_t max_decoded_body = default_max_decoded_body);

  /// SHA-256 of `definition()`.
  const Digest& id() const;
  /// The canonical form of version and options.
  const Bytes& definition() const;

  /// What the room's own functions look into.
  struct Rules;
  const Rules& rules() const { return *rules_; }

 private:
  explicit FingerprintProfile(std::shared_ptr<const Rules> rules) : rules_(std::move(rules)) {}
  std::shared_ptr<const Rules> rules_;
};

/// One request. Views into what the caller owns; `authority` is the Host header's value or that of
/// an absolute-form target, `target` the request target as it came.
struct FingerprintInput {
  std::string_view method;
  std::string_view operation;
  std::string_view authority;
  std::string_view target;
  const http::HeaderLines& headers;
  BytesView body;
};

/// The request has no single meaning and must be refused (`body-unusable`) before any claim.
struct Unusable {
  /// For the person who sent it: what and where, with no value from the body. At most 400 bytes of
  /// printable ASCII. E.g. `JSON body: member name "a" twice at /x`.
  std::string reason;
};

/// The digest of a request. Thread-safe; throws only std::bad_alloc.
std::variant<Digest, Unusable> fingerprint(const FingerprintProfile& profile,
                                           const FingerprintInput& input);

}  // namespace einmal
