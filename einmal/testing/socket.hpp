#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "einmal/probe/socket.hpp"

namespace einmal::test {

using probe::Incoming;
using probe::Milliseconds;

/// How long a test waits for what must come before it fails. Far above what is expected, since
/// sanitizers and a busy machine are slow; nothing passes by waiting it out.
inline constexpr Milliseconds patience{30'000};

/// The product's own socket with what only tests want: connections that must come about, Unix
/// sockets. Throws std::runtime_error when the operating system refuses what a test relies on.
class Socket : public probe::Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : probe::Socket(descriptor) {}
  explicit Socket(probe::Socket socket) : probe::Socket(std::move(socket)) {}
  /// Connects to 127.0.0.1; `receive_buffer` as there.
  static Socket connect(std::uint16_t port, int receive_buffer = 0);
  /// Connects to a Unix socket.
  static Socket connect_unix(const std::string& path);

  bool write(std::string_view bytes) { return probe::Socket::write(bytes); }
  Incoming read_some(Milliseconds wait = patience, std::size_t limit = 65536) {
    return probe::Socket::read_some(wait, limit);
  }
};

/// A listening socket on a free loopback port.
class Listener {
 public:
  Listener();
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::uint16_t port() const { return port_; }
  /// The next connection; a closed Socket once `stop` was called.
  Socket accept();
  /// Wakes `accept`. Further connection attempts are refused once the Listener is destroyed.
  void stop();

 private:
  int descriptor_ = -1;
  std::uint16_t port_ = 0;
};

/// A loopback port on which nobody listens: connecting to it is refused.
std::uint16_t refused_port();

/// Looks again and again, briefly apart, until `seen` or `patience` is over. Returns the last look.
template <class Predicate>
bool eventually(Predicate seen, Milliseconds wait = patience) {
  const auto end = std::chrono::steady_clock::now() + wait;
  while (!seen()) {
    if (std::chrono::steady_clock::now() >= end) return seen();
    std::this_thread::sleep_for(Milliseconds(2));
  }
  return true;
}

}  // namespace einmal::test
