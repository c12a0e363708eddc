#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <variant>

#include "einmal/fingerprint/canonical_form.hpp"
#include "einmal/fingerprint/fingerprint.hpp"

namespace einmal {

/// A request to compare; what a test does not set is the same in all of them.
struct SampleRequest {
  std::string method = "POST";
  std::string operation = "create-order";
  std::string authority = "api.example";
  std::string target = "/orders";
  http::HeaderLines headers;
  std::string body;

  FingerprintInput input() const { return {method, operation, authority, target, headers, body}; }

  SampleRequest with(std::string name, std::string value) const {
    SampleRequest changed = *this;
    changed.headers.add(std::move(name), std::move(value));
    return changed;
  }
};

inline SampleRequest to(std::string target) {
  SampleRequest request;
  request.target = std::move(target);
  return request;
}

inline SampleRequest sent(std::string content_type, std::string body) {
  SampleRequest request;
  request.headers.add("Content-Type", std::move(content_type));
  request.body = std::move(body);
  return request;
}

inline SampleRequest json(std::string body) { return sent("application/json", std::move(body)); }

inline FingerprintProfile profile_of(FingerprintOptions options) {
  auto profile = FingerprintProfile::make(std::move(options));
  if (!profile) ADD_FAILURE() << profile.error().message;
  return profile.value();
}

/// The digest in hex, or "unusable: " and the reason.
inline std::string print_of(const SampleRequest& request, const FingerprintProfile& profile) {
  const auto result = fingerprint(profile, request.input());
  if (const auto* unusable = std::get_if<Unusable>(&result)) return "unusable: " + unusable->reason;
  const auto& digest = std::get<Digest>(result);
  return to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

inline std::string print_of(const SampleRequest& request, FingerprintOptions options = {}) {
  return print_of(request, profile_of(std::move(options)));
}

inline bool is_unusable(const SampleRequest& request, FingerprintOptions options = {}) {
  return print_of(request, std::move(options)).rfind("unusable", 0) == 0;
}

/// Both have a digest and it is the same.
inline bool same(const SampleRequest& a, const SampleRequest& b, FingerprintOptions options = {}) {
  const auto profile = profile_of(std::move(options));
  const std::string print = print_of(a, profile);
  return print.rfind("unusable", 0) != 0 && print == print_of(b, profile);
}

/// Both have a digest and they differ.
inline bool differ(const SampleRequest& a, const SampleRequest& b,
                   FingerprintOptions options = {}) {
  const auto profile = profile_of(std::move(options));
  const std::string one = print_of(a, profile), other = print_of(b, profile);
  return one.rfind("unusable", 0) != 0 && other.rfind("unusable", 0) != 0 && one != other;
}

}  // namespace einmal
