#include "einmal/identity/network.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>
#include <string>

namespace einmal::identity {

namespace {

constexpr std::array<std::uint8_t, 12> mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

tl::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return failure(ErrorCode::invalid, "network \"" + std::string(text) + "\": " + std::string(why));
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string plain(text.substr(0, text.find('%')));
  IpAddress address;
  if (inet_pton(AF_INET6, plain.c_str(), address.bytes_.data()) == 1) return address;
  std::memcpy(address.bytes_.data(), mapped_prefix.data(), mapped_prefix.size());
  if (inet_pton(AF_INET, plain.c_str(), address.bytes_.data() + mapped_prefix.size()) == 1)
    return address;
  return std::nullopt;
}

Result<Network> Network::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto host = text.substr(0, slash);
  const auto base = IpAddress::parse(host);
  if (!base || host.find('%') != std::string_view::npos)
    return bad(text, "not an IPv4 or IPv6 address, or address/prefix");
  const bool v4 = host.find(':') == std::string_view::npos;
  Network network;
  network.base_ = *base;
  if (slash != std::string_view::npos) {
    const auto digits = text.substr(slash + 1);
    unsigned length = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
    if (error != std::errc{} || end != digits.data() + digits.size() || length > (v4 ? 32 : 128))
      return bad(text, v4 ? "the prefix is a number from 0 to 32" : "the prefix is 0 to 128");
    network.prefix_ = v4 ? length + 96 : length;
  }
  for (unsigned bit = network.prefix_; bit < 128; ++bit) {
    if ((network.base_.bytes_[bit / 8] >> (7 - bit % 8) & 1) != 0)
      return bad(text, "bits are set behind the prefix");
  }
  return network;
}

bool Network::contains(const IpAddress& address) const {
  const auto whole = prefix_ / 8;
  if (std::memcmp(base_.bytes_.data(), address.bytes_.data(), whole) != 0) return false;
  const auto rest = prefix_ % 8;
  if (rest == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff << (8 - rest));
  return (base_.bytes_[whole] & mask) == (address.bytes_[whole] & mask);
}

}  // namespace einmal::identity
