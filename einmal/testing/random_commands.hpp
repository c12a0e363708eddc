#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "einmal/testing/store_contract.hpp"

namespace einmal::testing {

/// `count` lines of a StoreScript (with `wait`, `jump` and `reboot` among them) drawn from `seed`:
/// few keys and owners, so that every state is met by every event, and waits that hit the ends of
/// leases, retention and tombstones exactly. What `factory` cannot do is not drawn.
std::vector<std::string> random_lines(std::uint64_t seed, std::size_t count,
                                      const StoreFactory& factory);

/// Plays `lines` on a fresh store and on the memory store under one clock, and compares every
/// answer in full. Nothing: they agree. Otherwise the first difference and the lines that lead to
/// it, with as many of them left out as can be.
std::optional<std::string> difference_from_memory(const StoreFactory& factory,
                                                  const std::vector<std::string>& lines);

/// EINMAL_SEED, or the seed given: failures print it.
std::uint64_t seed_or(std::uint64_t seed);

}  // namespace einmal::testing
