#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "einmal/http/head.hpp"
#include "einmal/testing/socket.hpp"

/// HTTP/1.1 as a test sees it: written as bytes, read with a reader of its own, so that what the
/// product parses and writes is judged by code that it does not share.

namespace einmal::test {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

/// A request, complete: as a scripted upstream counted it, or as a client will send it.
struct HttpRequest {
  std::string method = "POST";
  std::string target = "/orders";
  HeaderList headers;
  std::string body;
  std::string head_bytes;      ///< Received ones: the head as it came on the wire.
  http::HeaderLines trailers;  ///< Received ones.

  /// The first line of that name, or empty.
  std::string header(std::string_view name) const;
  std::size_t count(std::string_view name) const;
};

/// The bytes of `request`: Host and (with a body, or a method that has one) Content-Length are
/// added unless the headers carry them or a Transfer-Encoding.
std::string to_bytes(const HttpRequest& request);

/// How an answer ended.
enum class Ended : std::uint8_t {
  whole,       ///< As its framing said, or (delimited by close) with a clean end of stream.
  truncated,   ///< The stream ended before.
  reset,       ///< The connection was reset before.
  timed_out,   ///< Nothing came for as long as the reader waited.
  unreadable,  ///< Not HTTP/1.x.
};

struct HttpAnswer {
  int status = 0;
  std::string reason;
  http::HeaderLines headers;
  std::string body;
  http::HeaderLines trailers;
  std::string head_bytes;
  std::vector<std::string> interim;  ///< Heads of 1xx answers that came before.
  Ended ended = Ended::truncated;

  bool is_whole() const { return ended == Ended::whole; }
  /// The first line of that name, or empty.
  std::string header(std::string_view name) const;
  /// Value of a string or bare member of a JSON body; empty if there is none. Enough for problem
  /// documents.
  std::string member(std::string_view name) const;
};

/// Reads messages one after another from one socket, keeping what came early for the next.
class MessageReader {
 public:
  explicit MessageReader(Socket& socket) : socket_(socket) {}

  /// The next request; false when the connection ended or broke before it was complete. `seen` is
  /// told the number of bytes received so far of this request; its false stops the reading.
  using Seen = std::function<bool(std::size_t)>;
  bool read_request(HttpRequest& request, const Seen& seen = {});

  /// The next final answer to a request of `method`.
  HttpAnswer read_answer(std::string_view method = "POST", Milliseconds wait = patience);

  /// What came beyond the last message.
  const std::string& leftover() const { return buffer_; }

 private:
  Incoming::Kind fill(Milliseconds wait);
  bool read_head(std::string& head, Milliseconds wait, Ended& why);
  void read_body(const http::HeaderLines& headers, bool until_close, HttpAnswer& into,
                 Milliseconds wait);
  void read_chunks(HttpAnswer& into, Milliseconds wait);
  bool need(std::size_t bytes, Milliseconds wait, Ended& why);

  Socket& socket_;
  std::string buffer_;
  std::size_t received_ = 0;
  Seen seen_;
};

}  // namespace einmal::test
