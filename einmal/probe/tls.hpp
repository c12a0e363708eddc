#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "einmal/base/error.hpp"
#include "einmal/probe/socket.hpp"

namespace einmal::probe {

/// How a target's certificate is verified.
struct TlsChoice {
  std::string ca;         ///< PEM file of the authorities to trust; empty: the system's.
  bool insecure = false;  ///< Not at all.
};

/// The client's side of a TLS connection over a Socket, which it does not own and which must
/// outlive it. One thread at a time.
class TlsSession {
 public:
  /// Shakes hands. Errors: invalid (`ca` cannot be read), unavailable (no TLS, not verified, `wait`
  /// is over).
  static Result<std::unique_ptr<TlsSession>> connect(Socket& socket, const std::string& host,
                                                     const TlsChoice& choice, Milliseconds wait);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// As those of Socket, of what is inside. An end without close_notify is a reset.
  bool write(std::string_view bytes, Milliseconds wait);
  Incoming read_some(Milliseconds wait, std::size_t limit = 65536);
  bool is_readable(Milliseconds wait);
  /// Says that nothing more will be sent; reading goes on.
  void half_close();

 private:
  struct Impl;
  explicit TlsSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace einmal::probe
