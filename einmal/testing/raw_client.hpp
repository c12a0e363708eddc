#pragma once

#include <string>
#include <string_view>

#include "einmal/testing/http_message.hpp"
#include "einmal/testing/socket.hpp"

namespace einmal::test {

/// One connection on which a test sends any bytes it likes and leaves as rudely as it likes.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer = 0)
      : socket_(Socket::connect(port, receive_buffer)), reader_(socket_) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// False when the peer is gone.
  bool send(std::string_view bytes) { return socket_.write(bytes); }
  bool send(const HttpRequest& request) { return socket_.write(to_bytes(request)); }

  HttpAnswer read_answer(std::string_view method = "POST", Milliseconds wait = patience) {
    return reader_.read_answer(method, wait);
  }
  /// The next bytes as they come.
  Incoming read_some(Milliseconds wait = patience, std::size_t limit = 65536) {
    return socket_.read_some(wait, limit);
  }
  /// Everything up to the end of the stream (or `wait` without a byte). `reset` and `timeout` say
  /// how it ended.
  Incoming read_to_end(Milliseconds wait = patience);

  void half_close() { socket_.half_close(); }
  void reset() { socket_.reset(); }
  void close() { socket_.close(); }

 private:
  Socket socket_;
  MessageReader reader_;
};

/// A polite client: one connection per request, so that no test depends on keep-alive by accident.
class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port) : port_(port) {}

  HttpAnswer send(const HttpRequest& request, Milliseconds wait = patience) const;
  HttpAnswer get(std::string target, HeaderList headers = {}) const;
  HttpAnswer post(std::string target, std::string body, HeaderList headers = {}) const;

 private:
  std::uint16_t port_;
};

}  // namespace einmal::test
