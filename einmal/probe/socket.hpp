#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "einmal/base/error.hpp"

namespace einmal::probe {

using Milliseconds = std::chrono::milliseconds;

/// What one read brought.
struct Incoming {
  enum class Kind : std::uint8_t { data, end, reset, timeout };
  Kind kind = Kind::end;
  std::string bytes;  ///< With data: at least one.
};

/// Where a connection goes: resolved once, so that all of them go to the same machine.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;

  /// Errors: invalid (no such host).
  static Result<Endpoint> resolve(const std::string& host, std::uint16_t port);
  bool is_loopback() const;
};

/// A connected stream socket with the rude moves that a test of a server needs. One thread at a
/// time, except `shut_down`.
class Socket {
 public:
  static constexpr Milliseconds no_limit{-1};

  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  /// `receive_buffer` > 0 sets SO_RCVBUF before the handshake, so that a slow reader really holds
  /// the sender up. Errors: unavailable (refused, no route, `wait` is over).
  static Result<Socket> connect(const Endpoint& endpoint, Milliseconds wait = no_limit,
                                int receive_buffer = 0);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  /// Writes all of it; false when the peer is gone, or took nothing for as long as `wait`.
  bool write(std::string_view bytes, Milliseconds wait = no_limit);
  /// At most `limit` bytes, waiting up to `wait` for the first.
  Incoming read_some(Milliseconds wait, std::size_t limit = 65536);
  /// Whether something can be read (or the stream is over) within `wait`; takes nothing.
  bool is_readable(Milliseconds wait) const;

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

}  // namespace einmal::probe
