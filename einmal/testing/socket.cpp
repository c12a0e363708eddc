#include "einmal/testing/socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace einmal::test {

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int open_socket() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) fail("socket");
  return descriptor;
}

std::uint16_t bind_free_port(int descriptor) {
  auto address = loopback(0);
  if (::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("bind");
  socklen_t size = sizeof address;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    fail("getsockname");
  return ntohs(address.sin_port);
}

}  // namespace

Socket Socket::connect(std::uint16_t port, int receive_buffer) {
  probe::Endpoint endpoint;
  const auto address = loopback(port);
  std::memcpy(&endpoint.address, &address, sizeof address);
  endpoint.size = sizeof address;
  auto socket = probe::Socket::connect(endpoint, no_limit, receive_buffer);
  if (!socket) throw std::runtime_error(socket.error().message);
  return Socket(std::move(*socket));
}

Socket Socket::connect_unix(const std::string& path) {
  Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!socket.is_open() || path.size() >= sizeof address.sun_path) fail("socket");
  path.copy(address.sun_path, path.size());
  if (::connect(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    fail("connect");
  return socket;
}

Listener::Listener() : descriptor_(open_socket()) {
  port_ = bind_free_port(descriptor_);
  if (::listen(descriptor_, 1024) != 0) fail("listen");
}

Listener::~Listener() { ::close(descriptor_); }

Socket Listener::accept() {
  while (true) {
    const int descriptor = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor >= 0) {
      const int on = 1;
      ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return Socket(descriptor);
    }
    if (errno != EINTR && errno != ECONNABORTED) return {};
  }
}

void Listener::stop() { ::shutdown(descriptor_, SHUT_RDWR); }

std::uint16_t refused_port() {
  // Bound and never listened on: the kernel refuses connections and gives the port to nobody else
  // while a descriptor of this process holds it.
  static const Socket holder(open_socket());
  static const std::uint16_t port = bind_free_port(holder.descriptor());
  return port;
}

}  // namespace einmal::test
