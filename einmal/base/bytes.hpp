#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace einmal {

/// Uninterpreted bytes. A std::string holds them; nothing here assumes text.
using Bytes = std::string;
using BytesView = std::string_view;

/// Lower-case hexadecimal, two digits a byte.
std::string to_hex(BytesView bytes);

/// The bytes that `hex` spells (either case); nothing if it is not an even number of hex digits.
std::optional<Bytes> from_hex(std::string_view hex);

/// Appends `value` as eight bytes, most significant first.
void append_u64_be(Bytes& out, std::uint64_t value);

/// Appends the length as append_u64_be and then the bytes: the length prefix of every stored
/// format.
void append_length_prefixed(Bytes& out, BytesView part);

}  // namespace einmal
