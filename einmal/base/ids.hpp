#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "einmal/base/bytes.hpp"
#include "einmal/base/random.hpp"

namespace einmal {

/// A 128-bit identifier of one kind; kinds do not mix. Text form is a UUID (RFC 9562).
template <class Tag>
class Id128 {
 public:
  Id128() = default;

  /// 122 random bits shaped as a version 4 UUID.
  static Id128 draw(Random& random) {
    Id128 id;
    random.fill(id.bytes_.data(), id.bytes_.size());
    id.bytes_[6] = static_cast<unsigned char>((id.bytes_[6] & 0x0f) | 0x40);
    id.bytes_[8] = static_cast<unsigned char>((id.bytes_[8] & 0x3f) | 0x80);
    return id;
  }

  /// From exactly 16 bytes; nothing otherwise.
  static std::optional<Id128> from_bytes(BytesView bytes) {
    if (bytes.size() != 16) return std::nullopt;
    Id128 id;
    std::memcpy(id.bytes_.data(), bytes.data(), 16);
    return id;
  }

  /// From the UUID form, with or without hyphens, either case; nothing otherwise.
  static std::optional<Id128> from_text(std::string_view text) {
    std::string hex;
    for (const char c : text) {
      if (c != '-') hex.push_back(c);
    }
    const auto bytes = from_hex(hex);
    return bytes ? from_bytes(*bytes) : std::nullopt;
  }

  BytesView bytes() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

  std::string text() const {
    const std::string hex = to_hex(bytes());
    return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
           hex.substr(16, 4) + "-" + hex.substr(20);
  }

  bool is_nil() const {
    return std::all_of(bytes_.begin(), bytes_.end(), [](unsigned char b) { return b == 0; });
  }

  friend bool operator==(const Id128&, const Id128&) = default;
  friend auto operator<=>(const Id128&, const Id128&) = default;

 private:
  std::array<unsigned char, 16> bytes_{};
};

}  // namespace einmal

template <class Tag>
struct std::hash<einmal::Id128<Tag>> {
  std::size_t operator()(const einmal::Id128<Tag>& id) const noexcept {
    return std::hash<std::string_view>{}(id.bytes());
  }
};
