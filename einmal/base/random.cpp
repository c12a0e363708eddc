#include "einmal/base/random.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace einmal {

std::uint64_t Random::below(std::uint64_t bound) {
  if (bound == 0) return 0;
  std::uint64_t value = 0;
  fill(&value, sizeof value);
  return value % bound;
}

void SystemRandom::fill(void* out, std::size_t size) {
  auto* at = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = getrandom(at, size, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      std::abort();
    }
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

std::uint64_t SeededRandom::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void SeededRandom::fill(void* out, std::size_t size) {
  auto* at = static_cast<char*>(out);
  while (size > 0) {
    const std::uint64_t value = next();
    const std::size_t n = size < sizeof value ? size : sizeof value;
    std::memcpy(at, &value, n);
    at += n;
    size -= n;
  }
}

}  // namespace einmal
