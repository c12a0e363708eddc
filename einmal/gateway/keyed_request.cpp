#include "einmal/gateway/keyed_request.hpp"

namespace einmal::gateway {

FingerprintInput KeyedRequest::input() const {
  return {head.method, name_,        head.headers.first("Host").value_or(""),
          head.target, head.headers, body};
}

std::optional<Unusable> KeyedRequest::compute() {
  auto computed = einmal::fingerprint(operation_.profile, input());
  if (auto* unusable = std::get_if<Unusable>(&computed)) return std::move(*unusable);
  digest_ = std::get<Digest>(computed);
  return std::nullopt;
}

std::optional<Digest> KeyedRequest::digest_under(const Profile& profile) const {
  const auto known = FingerprintProfile::from_definition(profile.definition);
  if (!known) return std::nullopt;
  const auto computed = einmal::fingerprint(*known, input());
  if (const auto* digest = std::get_if<Digest>(&computed)) return *digest;
  return std::nullopt;
}

}  // namespace einmal::gateway
