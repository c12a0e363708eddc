#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "einmal/fingerprint/fingerprint.hpp"
#include "einmal/fingerprint/json_selection.hpp"

namespace einmal {

/// Begins every definition and every canonical form; the version follows as a count.
inline constexpr std::string_view fingerprint_magic = "einmal-fingerprint";
inline constexpr std::uint64_t fingerprint_version = 1;

/// A profile made ready for use.
struct FingerprintProfile::Rules {
  Digest id{};
  Bytes definition;
  std::vector<std::string> headers;  ///< Lower case, sorted.
  std::vector<std::string> hosts;    ///< Canonical; the first stands for all of them.
  JsonSelection selection;
  bool nfc = false;
  std::size_t max_decoded_body = 0;

  /// The authority that stands for `authority`.
  std::string authority(std::string_view authority) const;
};

}  // namespace einmal
