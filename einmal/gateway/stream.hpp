#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "einmal/base/error.hpp"
#include "einmal/gateway/config.hpp"
#include "einmal/gateway/loop.hpp"

namespace einmal::gateway {

/// How a read or write ended.
enum class IoStatus : std::uint8_t {
  ok,
  end,        ///< The peer ended the stream in order (over TLS: with close_notify).
  broken,     ///< Reset, or a failure of TLS.
  timed_out,  ///< The stream's deadline passed.
  closed,     ///< We closed it.
};

struct IoResult {
  std::size_t bytes = 0;
  IoStatus status = IoStatus::ok;
  bool ok() const { return status == IoStatus::ok; }
};

/// A connection, plain or TLS. At most one read (or wait) and one write are under way at a time.
/// One deadline is shared by both; it is checked once a loop tick.
class Stream : private Deadline {
 public:
  explicit Stream(Loop& loop) : Deadline(loop) {}
  ~Stream() override = default;

  /// An operation under way; lives in the awaiting coroutine's frame.
  struct Operation {
    std::coroutine_handle<> waiter;
    IoResult result;

    void finish(IoResult with) {
      result = with;
      waiter.resume();
    }
  };
  using Parts = std::array<std::string_view, 4>;

  /// What the functions below return: to be awaited at once.
  template <class Start>
  class Awaited {
   public:
    Awaited(Stream& stream, Start start) : stream_(stream), start_(start) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiter) {
      operation_.waiter = waiter;
      return start_(stream_, operation_);
    }
    IoResult await_resume() const { return operation_.result; }

   private:
    Stream& stream_;
    Start start_;
    Operation operation_;
  };

  /// At least one byte, at most `size`, unless the status is not ok.
  auto read_some(char* data, std::size_t size) {
    return Awaited(*this, [data, size](Stream& stream, Operation& operation) {
      return stream.start_read(operation, data, size);
    });
  }
  /// All the parts, one after another, gathered into as few system calls as the kernel takes.
  /// `bytes` counts what was handed to the kernel (plain) or to TLS, also when it fails.
  auto write(std::string_view a, std::string_view b = {}, std::string_view c = {},
             std::string_view d = {}) {
    return Awaited(*this,
                   [parts = Parts{a, b, c, d}](Stream& stream, Operation& operation) mutable {
                     return stream.start_write(operation, parts);
                   });
  }
  /// Until there is something to read, an end or an error included; holds no buffer meanwhile.
  auto readable() {
    return Awaited(
        *this, [](Stream& stream, Operation& operation) { return stream.start_wait(operation); });
  }
  /// TLS only; at once on a plain stream.
  auto handshake() {
    return Awaited(*this, [](Stream& stream, Operation& operation) {
      return stream.start_handshake(operation);
    });
  }

  /// From now on; progress of a write begins it anew. Operations end with `timed_out` once it is
  /// over, and so does every later one until the next call.
  void expires_after(Duration delay) {
    timed_out_ = false;
    delay_ = delay;
    set_after(delay);
  }
  void never_expires() {
    timed_out_ = false;
    delay_ = Duration{0};
    clear();
  }

  /// Whether nothing has come: neither a byte nor an end nor an error. Does not consume.
  virtual bool is_quiet() = 0;
  /// Unread bytes or not.
  enum class Peer : std::uint8_t {
    present,
    half_closed,  ///< It has ended its direction and may still read.
    gone,         ///< It has reset the connection.
  };
  virtual Peer look_at_peer() = 0;
  /// What is under way finishes with `closed`, not inside this call; the stream stays usable.
  virtual void cancel() = 0;
  /// Ends our direction; the peer reads an end after what was written.
  virtual void shut_down() = 0;
  /// Ends both at once. What is under way finishes with `closed`, not inside this call.
  virtual void close() = 0;
  /// So that the peer gets a reset.
  virtual void reset() = 0;

  /// The peer's address in text, without port.
  virtual std::string peer_address() const = 0;
  virtual bool is_tls() const { return false; }
  /// DER of the peer's verified certificate; empty without one.
  virtual std::string peer_certificate() const { return {}; }

 protected:
  /// Each returns whether the operation is under way; otherwise its result is set.
  virtual bool start_read(Operation& operation, char* data, std::size_t size) = 0;
  virtual bool start_write(Operation& operation, Parts& parts) = 0;
  virtual bool start_wait(Operation& operation) = 0;
  virtual bool start_handshake(Operation& operation) {
    operation.result = {};
    return false;
  }

  bool timed_out() const { return timed_out_; }
  void progressed() {
    if (is_set()) set_after(delay_);
  }

 private:
  void expired() override {
    timed_out_ = true;
    cancel();
  }

  bool timed_out_ = false;
  Duration delay_{0};
};

/// TLS settings of one side, read from files.
class TlsContext;
Result<std::shared_ptr<TlsContext>> server_tls(const ServerTls& config);
Result<std::shared_ptr<TlsContext>> client_tls(const ClientTls& config);

/// Why a connection could not be made; nothing was sent that belongs to a request.
enum class ConnectFailure : std::uint8_t { unresolved, refused, timed_out, handshake };

struct Connected {
  std::unique_ptr<Stream> stream;
  ConnectFailure failure = ConnectFailure::refused;  ///< Without a stream.
};

/// Connects to where an upstream is. Names are resolved anew for each connection (by a thread that
/// asio keeps for that); literal addresses are not. Loop's thread only.
class Connector {
 public:
  virtual ~Connector() = default;
  virtual Async<Connected> connect(Duration time_limit) = 0;
};
std::unique_ptr<Connector> make_connector(Loop& loop, UpstreamAddress address,
                                          std::shared_ptr<TlsContext> tls, std::string server_name);

/// A listening socket. Hands each connection over as a Stream that is not yet shaken hands with.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual std::uint16_t port() const = 0;
  /// From now on `accepted` is called for each connection, until `close`.
  virtual void start(std::function<void(std::unique_ptr<Stream>)> accepted) = 0;
  /// TLS for the connections that are accepted from now on; nothing: plain.
  virtual void use_tls(std::shared_ptr<TlsContext> tls) = 0;
  virtual void close() = 0;
};

/// Binds and listens. Errors: invalid (the address), unavailable (in use, no permission); `option`
/// names the setting in the message.
Result<std::unique_ptr<Listener>> listen(Loop& loop, const HostPort& address,
                                         std::string_view option);

}  // namespace einmal::gateway
