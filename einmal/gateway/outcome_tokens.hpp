#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/error.hpp"
#include "einmal/core/record.hpp"

namespace einmal::gateway {

/// Secrets of those who may report outcomes. Kept as digests; compared in constant time.
class OutcomeTokens {
 public:
  /// One token a line, at least 32 visible ASCII characters; empty lines and those that begin with
  /// # are left out. Errors: invalid, naming file and line, never what stands there.
  static Result<OutcomeTokens> read(const std::string& path);

  /// Whether an Authorization line carries one of them as a Bearer token (RFC 6750 section 2.1).
  bool admit(std::string_view authorization) const;

 private:
  std::vector<Digest> digests_;
};

}  // namespace einmal::gateway
