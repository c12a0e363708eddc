#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "einmal/http/head.hpp"
#include "einmal/probe/socket.hpp"
#include "einmal/probe/tls.hpp"

/// One connection to the target, on which the probe sends any bytes it likes, when it likes.

namespace einmal::probe {

/// A request as the probe will send it. Header lines are sent as they are, in this order.
struct Request {
  std::string method, target;
  http::HeaderLines headers;
  std::string body;
};

/// The bytes of `request` up to and without the body, with Content-Length.
std::string head_bytes(const Request& request);
std::string to_bytes(const Request& request);
/// The same message under chunked transfer coding, cut into several chunks.
std::string to_chunked_bytes(const Request& request);

struct Answer {
  int status = 0;  ///< 0: no whole answer came; `problem` says why.
  http::HeaderLines headers;
  std::string body;
  std::string problem;

  bool came() const { return status != 0; }
  bool is_success() const { return status >= 200 && status < 300; }
  bool is_refusal() const { return status >= 400 && status < 500; }
};

/// Where the target is and how it is spoken to.
struct Route {
  Endpoint endpoint;
  std::string host;              ///< The name that its certificate must carry.
  std::optional<TlsChoice> tls;  ///< Nothing: plain.
};

class Exchange {
 public:
  /// Connects. When that fails every later call fails as well, and `read_answer` says why.
  Exchange(const Route& route, Milliseconds timeout, int receive_buffer = 0);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool is_open() const { return socket_.is_open(); }
  const std::string& problem() const { return problem_; }
  /// False when the peer is gone or does not read.
  bool send(std::string_view bytes);
  /// Whether the answer (or the end of the stream) begins to come within `wait`; reads nothing.
  bool answer_begins(Milliseconds wait);
  /// The next final answer, read `piece` bytes at a time with `pause` between two reads.
  Answer read_answer(std::string_view method, std::size_t piece = 65536,
                     Milliseconds pause = Milliseconds(0));
  /// Reads at most `bytes` of the answer and forgets them.
  void read_only(std::size_t bytes);

  /// FIN, with TLS after close_notify; reading goes on.
  void half_close();
  /// RST, also with TLS.
  void reset() { socket_.reset(); }
  void close() { socket_.close(); }

 private:
  Incoming read_some(Milliseconds wait, std::size_t limit);

  Milliseconds timeout_;
  Socket socket_;
  std::unique_ptr<TlsSession> tls_;
  std::string problem_;
  std::string early_;  ///< Read, and belonging to the next answer.
};

}  // namespace einmal::probe
