#pragma once

#include <cstddef>
#include <cstdint>

namespace einmal {

/// Where chance comes in. Implementations are safe to call from any thread unless they say
/// otherwise.
class Random {
 public:
  virtual ~Random() = default;

  /// Fills `size` bytes at `out`.
  virtual void fill(void* out, std::size_t size) = 0;

  /// A number in [0, bound); 0 for bound 0. For jitter, not for keys.
  std::uint64_t below(std::uint64_t bound);
};

/// The operating system's generator (getrandom(2)): ids, owner tokens, secrets. Thread-safe.
/// Ends the process if the kernel refuses, since nothing could be safe after that.
class SystemRandom final : public Random {
 public:
  void fill(void* out, std::size_t size) override;
};

/// Reproducible from a seed (SplitMix64, Steele et al. 2014). For tests and simulation; not
/// thread-safe.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  void fill(void* out, std::size_t size) override;
  std::uint64_t next();

 private:
  std::uint64_t state_;
};

}  // namespace einmal
