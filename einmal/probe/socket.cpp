#include "einmal/probe/socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace einmal::probe {

namespace {

/// Whether `events` (or an error) came within `wait`.
bool wait_for(int descriptor, short events, Milliseconds wait) {
  pollfd watched{descriptor, events, 0};
  int ready = 0;
  do {
    ready = ::poll(&watched, 1, static_cast<int>(wait.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool finish_connecting(int descriptor, const Endpoint& endpoint, Milliseconds wait) {
  const auto* address = reinterpret_cast<const sockaddr*>(&endpoint.address);
  if (::connect(descriptor, address, endpoint.size) == 0) return true;
  if (errno != EINPROGRESS) return false;
  if (!wait_for(descriptor, POLLOUT, wait)) {
    errno = ETIMEDOUT;
    return false;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error == 0;
}

}  // namespace

Result<Endpoint> Endpoint::resolve(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found); error != 0)
    return failure(ErrorCode::invalid, "host " + host + ": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> keep(found, ::freeaddrinfo);
  Endpoint endpoint;
  std::memcpy(&endpoint.address, found->ai_addr, found->ai_addrlen);
  endpoint.size = found->ai_addrlen;
  if (found->ai_family == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(endpoint.address).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(endpoint.address).sin_port = htons(port);
  return endpoint;
}

bool Endpoint::is_loopback() const {
  if (address.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  const auto& four = reinterpret_cast<const sockaddr_in&>(address);
  return address.ss_family == AF_INET && (ntohl(four.sin_addr.s_addr) >> 24) == 127;
}

Result<Socket> Socket::connect(const Endpoint& endpoint, Milliseconds wait, int receive_buffer) {
  Socket socket(
      ::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.is_open() && receive_buffer > 0)
    ::setsockopt(socket.descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  if (!socket.is_open() || !finish_connecting(socket.descriptor_, endpoint, wait))
    return failure(ErrorCode::unavailable, std::string("connect: ") + std::strerror(errno));
  const int flags = ::fcntl(socket.descriptor_, F_GETFL);
  ::fcntl(socket.descriptor_, F_SETFL, flags & ~O_NONBLOCK);
  const int on = 1;
  ::setsockopt(socket.descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

Socket::~Socket() { close(); }

bool Socket::write(std::string_view bytes, Milliseconds wait) {
  const int flags = MSG_NOSIGNAL | (wait == no_limit ? 0 : MSG_DONTWAIT);
  while (!bytes.empty()) {
    const auto sent = ::send(descriptor_, bytes.data(), bytes.size(), flags);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if ((errno == EAGAIN || errno == EWOULDBLOCK) && wait_for(descriptor_, POLLOUT, wait))
        continue;
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Incoming Socket::read_some(Milliseconds wait, std::size_t limit) {
  if (!wait_for(descriptor_, POLLIN, wait)) return {Incoming::Kind::timeout, {}};
  std::string bytes(limit, '\0');
  const auto got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
  if (got < 0) return {Incoming::Kind::reset, {}};
  if (got == 0) return {Incoming::Kind::end, {}};
  bytes.resize(static_cast<std::size_t>(got));
  return {Incoming::Kind::data, std::move(bytes)};
}

bool Socket::is_readable(Milliseconds wait) const { return wait_for(descriptor_, POLLIN, wait); }

void Socket::half_close() { ::shutdown(descriptor_, SHUT_WR); }

void Socket::reset() {
  const linger now{1, 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void Socket::shut_down() const { ::shutdown(descriptor_, SHUT_RDWR); }

}  // namespace einmal::probe
