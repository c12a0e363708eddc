#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "einmal/base/error.hpp"

namespace einmal::identity {

/// An IPv4 or IPv6 address; an IPv4 one equals its IPv4-mapped form (RFC 4291 section 2.5.5.2).
class IpAddress {
 public:
  /// The unspecified address, in no network but the whole one.
  IpAddress() = default;
  /// Nothing if it is no address in text. A zone (`%eth0`) is cut off.
  static std::optional<IpAddress> parse(std::string_view text);

  friend bool operator==(const IpAddress&, const IpAddress&) = default;

 private:
  friend class Network;
  std::array<std::uint8_t, 16> bytes_{};
};

/// A network in CIDR notation, or one address.
class Network {
 public:
  /// Errors: invalid, saying what is wrong with `text` (also: bits set behind the prefix).
  static Result<Network> parse(std::string_view text);
  bool contains(const IpAddress& address) const;

 private:
  IpAddress base_;
  unsigned prefix_ = 128;  ///< Of 128 bits.
};

}  // namespace einmal::identity
