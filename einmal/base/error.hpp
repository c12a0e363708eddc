#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace einmal {

/// What the receiver of an error should do. A code exists only where some caller acts differently.
enum class ErrorCode {
  unavailable,   ///< Nothing was changed; back off and try again.
  in_doubt,      ///< It may have happened or not; read back before anything else.
  invalid,       ///< The input is wrong; the message says what and where. Do not retry unchanged.
  unsupported,   ///< This store or build cannot do it (a capability it does not declare).
  incompatible,  ///< Written by a newer version, or not ours at all; a person must look.
  corrupt,       ///< Stored bytes contradict themselves; a person must look.
  internal,      ///< A fault in einmal; report it.
};

/// An operating failure. `message` is for the person who must act: what, where, what to do.
/// It may name files and options; it never contains a key, a body or a credential.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;

  friend bool operator==(const Error&, const Error&) = default;
};

/// A value or an Error. Expected outcomes are not errors: they are closed sum types in T.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

inline tl::unexpected<Error> failure(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

/// The same error on its way up: `if (!r) return pass_on(r);`
template <class T>
tl::unexpected<Error> pass_on(const Result<T>& result) {
  return tl::unexpected<Error>(result.error());
}

}  // namespace einmal
