#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "einmal/base/error.hpp"
#include "shop/shop.hpp"

namespace einmal::shop {

/// Serves a shop over HTTP/1.1, one thread for each connection, and performs the faults that the
/// X-Demo headers ask for.
class Server {
 public:
  /// Listens on host:port (0: a free one) and serves from then on. `shop` must outlive the server.
  /// Errors: invalid (no such host), unavailable (the port is in use).
  static Result<std::unique_ptr<Server>> start(Shop& shop, const std::string& host,
                                               std::uint16_t port);
  /// Closes every connection and waits for the threads.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace einmal::shop
