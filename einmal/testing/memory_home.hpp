#pragma once

#include "einmal/store/memory.hpp"
#include "einmal/testing/store_contract.hpp"

namespace einmal::testing {

/// A memory store behind the contract's factory. What is opened again is the same store.
StoreFactory memory_factory(MemoryOptions options = {});

/// The memory store that a store of these traits is compared with.
MemoryOptions like(const StoreFactory& factory);

}  // namespace einmal::testing
