#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

namespace einmal::test {

using Milliseconds = std::chrono::milliseconds;

/// How long a test waits for what must come before it fails. Far above what is expected, since
/// sanitizers and a busy machine are slow; nothing passes by waiting it out.
inline constexpr Milliseconds patience{30'000};

/// What one read brought.
struct Incoming {
  enum class Kind : std::uint8_t { data, end, reset, timeout };
  Kind kind = Kind::end;
  std::string bytes;  ///< With data: at least one.
};

/// A loopback TCP socket with the rude moves a test needs. One thread at a time, except
/// `shut_down`. Throws std::runtime_error when the operating system refuses what a test relies on.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  /// Connects to 127.0.0.1. `receive_buffer` > 0 sets SO_RCVBUF before the handshake, so that a
  /// slow reader really holds the sender up.
  static Socket connect(std::uint16_t port, int receive_buffer = 0);
  /// Connects to a Unix socket.
  static Socket connect_unix(const std::string& path);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  /// Writes all of it; false when the peer is gone. Blocks while the peer does not read.
  bool write(std::string_view bytes);
  /// At most `limit` bytes, waiting up to `wait` for the first.
  Incoming read_some(Milliseconds wait = patience, std::size_t limit = 65536);

  /// Sends FIN; reading goes on.
  void half_close();
  /// Closes so that the peer gets RST.
  void reset();
  void close();
  /// Ends both directions without giving the descriptor back: wakes a thread that reads it.
  void shut_down() const;

 private:
  int descriptor_ = -1;
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
