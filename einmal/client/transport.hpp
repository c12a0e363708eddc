#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "einmal/base/clock.hpp"
#include "einmal/client/request.hpp"

namespace einmal::client {

/// Named moments of an attempt, for tests that end or stop the process there. In order.
enum class Point : std::uint8_t {
  intent_durable,   ///< Name, key and bytes are in the journal.
  attempt_durable,  ///< So is that an attempt may have been sent from now on.
  connected,        ///< The next thing that happens is the request's first byte.
  answer_began,     ///< The first bytes of an answer are here.
  answer_whole,
  verdict_durable,
};
/// "intent_durable" ...
std::string_view name(Point point);

/// Is told of each point as it is reached, in the thread that works.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void at(Point point) = 0;
};

/// What is put on the wire: these header lines in this order and, beyond them, only Host and
/// Content-Length.
struct WireRequest {
  std::string method;
  std::string url;
  http::HeaderLines headers;
  BytesView body;  ///< Not copied.
};

namespace exchange {
/// No byte of the request left: no name, no route, refused, TLS failed.
struct NotSent {
  std::string why;        ///< For a person.
  bool for_good = false;  ///< Another attempt would end the same (an untrusted certificate ...).
};
/// At least one byte may have left, and no whole answer came.
struct NoAnswer {
  std::string why;
};
}  // namespace exchange
using Exchange = std::variant<exchange::NotSent, exchange::NoAnswer, Answer>;

/// Sends one request once. An implementation that sends again by itself, follows redirects, or
/// uses a connection that carried another request breaks the client's promise.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Takes at most `time`, all in all. `watcher` (may be null) hears connected, answer_began,
  /// answer_whole.
  virtual Exchange send(const WireRequest& request, Duration time, Watcher* watcher) = 0;
};

struct CurlOptions {
  std::size_t largest_answer = 16 * 1024 * 1024;  ///< Longer bodies are read and dropped.
  /// URL of a proxy, "" for none; nothing: what the environment says (http_proxy ...).
  std::optional<std::string> proxy;
  std::string ca_file;  ///< Certificates to trust, PEM; empty: the system's.
};

/// HTTP/1.1 over libcurl, each request on a connection of its own: libcurl sends a request again
/// when a reused connection turns out to be dead, and on HTTP/2 when the server refuses a stream.
/// Belongs to one thread at a time.
std::unique_ptr<Transport> make_curl_transport(CurlOptions options = {});

}  // namespace einmal::client
