#include "einmal/gateway/outcome_tokens.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <fstream>

#include "einmal/http/head.hpp"

namespace einmal::gateway {

namespace {

constexpr std::size_t least_token = 32;

Digest digest_of(std::string_view text) {
  Digest digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return digest;
}

}  // namespace

Result<OutcomeTokens> OutcomeTokens::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return failure(ErrorCode::invalid, "outcome_tokens: " + path + " cannot be read");
  OutcomeTokens tokens;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const bool is_visible =
        std::all_of(line.begin(), line.end(), [](char c) { return c > ' ' && c < '\x7f'; });
    if (line.size() < least_token || !is_visible) {
      return failure(ErrorCode::invalid, "outcome_tokens: " + path + ":" + std::to_string(number) +
                                             ": at least 32 visible ASCII characters are needed");
    }
    tokens.digests_.push_back(digest_of(line));
  }
  if (tokens.digests_.empty())
    return failure(ErrorCode::invalid, "outcome_tokens: " + path + " holds no token");
  return tokens;
}

bool OutcomeTokens::admit(std::string_view authorization) const {
  constexpr std::string_view scheme = "Bearer ";
  if (!http::istarts_with(authorization, scheme)) return false;
  const Digest given = digest_of(http::trim(authorization.substr(scheme.size())));
  bool admitted = false;
  for (const auto& each : digests_)
    admitted = CRYPTO_memcmp(each.data(), given.data(), given.size()) == 0 || admitted;
  return admitted;
}

}  // namespace einmal::gateway
