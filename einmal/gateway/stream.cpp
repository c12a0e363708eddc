#include "einmal/gateway/stream.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>

#include "einmal/gateway/tls.hpp"

namespace einmal::gateway {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

namespace {

using Socket = asio::basic_stream_socket<Tcp, asio::io_context::executor_type>;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

void drop_front(Stream::Parts& parts, std::size_t bytes) {
  for (auto& part : parts) {
    const auto taken = std::min(bytes, part.size());
    part.remove_prefix(taken);
    bytes -= taken;
  }
}

bool empty(const Stream::Parts& parts) {
  return std::all_of(parts.begin(), parts.end(), [](auto part) { return part.empty(); });
}

/// What plain and TLS streams share: the socket, waiting for it, and the end of it.
class SocketStream : public Stream {
 public:
  SocketStream(Loop& loop, Socket socket) : Stream(loop), socket_(std::move(socket)) {
    error_code ignored;
    socket_.native_non_blocking(true, ignored);
    socket_.set_option(Tcp::no_delay(true), ignored);
  }

  Peer look_at_peer() override {
    pollfd look{handle(), POLLIN | POLLRDHUP, 0};
    if (closed_ || ::poll(&look, 1, 0) <= 0) return closed_ ? Peer::gone : Peer::present;
    if ((look.revents & (POLLHUP | POLLERR)) != 0) return Peer::gone;
    return (look.revents & POLLRDHUP) != 0 ? Peer::half_closed : Peer::present;
  }
  void cancel() override {
    error_code ignored;
    socket_.cancel(ignored);
  }
  void shut_down() override {
    error_code ignored;
    socket_.shutdown(Tcp::socket::shutdown_send, ignored);
  }
  void close() override {
    closed_ = true;
    error_code ignored;
    socket_.close(ignored);
  }
  void reset() override {
    error_code ignored;
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
    SocketStream::close();
  }
  std::string peer_address() const override {
    error_code error;
    const auto peer = socket_.remote_endpoint(error);
    return error ? std::string() : peer.address().to_string();
  }

 protected:
  bool start_wait(Operation& operation) override {
    if (unusable(operation)) return false;
    socket_.async_wait(Socket::wait_read, [this, &operation](const error_code& error) {
      operation.finish(result(error, 0));
    });
    return true;
  }

  /// Whether the operation ends here, its result set, because the stream is closed or over time.
  bool unusable(Operation& operation) {
    if (!closed_ && !timed_out()) return false;
    operation.result.status = closed_ ? IoStatus::closed : IoStatus::timed_out;
    return true;
  }

  IoResult result(const error_code& error, std::size_t bytes) const {
    if (!error) return {bytes, IoStatus::ok};
    if (error == asio::error::eof) return {bytes, IoStatus::end};
    if (closed_) return {bytes, IoStatus::closed};
    if (error == asio::error::operation_aborted)
      return {bytes, timed_out() ? IoStatus::timed_out : IoStatus::closed};
    return {bytes, IoStatus::broken};
  }

  int handle() const { return const_cast<Socket&>(socket_).native_handle(); }

  Socket socket_;
  bool closed_ = false;
};

class PlainStream final : public SocketStream {
 public:
  using SocketStream::SocketStream;

  bool is_quiet() override {
    char byte = 0;
    return !closed_ && ::recv(handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           would_block(errno);
  }

 private:
  bool start_read(Operation& operation, char* data, std::size_t size) override {
    if (unusable(operation)) return false;
    socket_.async_read_some(asio::buffer(data, size),
                            [this, &operation](const error_code& error, std::size_t bytes) {
                              operation.finish(result(error, bytes));
                            });
    return true;
  }

  bool start_write(Operation& operation, Parts& parts) override {
    if (unusable(operation)) return false;
    if (push(operation, parts)) return false;
    wait_to_write(operation, parts);
    return true;
  }

  void wait_to_write(Operation& operation, Parts& parts) {
    socket_.async_wait(Socket::wait_write, [this, &operation, &parts](const error_code& error) {
      if (error) {
        operation.finish(result(error, operation.result.bytes));
      } else if (push(operation, parts)) {
        operation.finish(operation.result);
      } else {
        wait_to_write(operation, parts);
      }
    });
  }

  /// Writes what the kernel takes; true when all is written or it failed.
  bool push(Operation& operation, Parts& parts) {
    while (!empty(parts)) {
      std::array<iovec, std::tuple_size_v<Parts>> vector{};
      std::size_t count = 0;
      for (const auto part : parts) {
        if (!part.empty()) vector[count++] = {const_cast<char*>(part.data()), part.size()};
      }
      msghdr message{};
      message.msg_iov = vector.data();
      message.msg_iovlen = count;
      const auto sent = ::sendmsg(handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) {
        if (would_block(errno)) return false;
        operation.result.status = IoStatus::broken;
        return true;
      }
      operation.result.bytes += static_cast<std::size_t>(sent);
      drop_front(parts, static_cast<std::size_t>(sent));
      progressed();
    }
    return true;
  }
};

// --- TLS. OpenSSL reads and writes the socket itself, so that an idle connection holds no buffers
// but its own, which SSL_MODE_RELEASE_BUFFERS gives back.

class TlsStream final : public SocketStream {
 public:
  TlsStream(Loop& loop, Socket socket, SslPointer ssl)
      : SocketStream(loop, std::move(socket)), ssl_(std::move(ssl)) {
    attach_socket(*ssl_, handle());
  }

  bool is_quiet() override {
    if (closed_) return false;
    char byte = 0;
    ERR_clear_error();
    const int got = SSL_peek(ssl_.get(), &byte, 1);  // Also takes in session tickets.
    return got <= 0 && SSL_get_error(ssl_.get(), got) == SSL_ERROR_WANT_READ;
  }
  void shut_down() override {
    say_goodbye();
    SocketStream::shut_down();
  }
  void close() override {
    if (!closed_) say_goodbye();
    SocketStream::close();
  }
  bool is_tls() const override { return true; }
  std::string peer_certificate() const override { return verified_certificate(*ssl_); }

 private:
  bool start_read(Operation& operation, char* data, std::size_t size) override {
    return begin(operation, [this, &operation, data, size] {
      std::size_t bytes = 0;
      const int done = SSL_read_ex(ssl_.get(), data, size, &bytes);
      operation.result.bytes = bytes;
      return done;
    });
  }

  bool start_write(Operation& operation, Parts& parts) override {
    return begin(operation, [this, &operation, &parts] {
      while (!empty(parts)) {
        const auto chunk = gathered(parts);
        std::size_t bytes = 0;
        const int done = SSL_write_ex(ssl_.get(), chunk.data(), chunk.size(), &bytes);
        if (done <= 0) return done;
        operation.result.bytes += bytes;
        drop_front(parts, bytes);
        progressed();
      }
      return 1;
    });
  }

  bool start_handshake(Operation& operation) override {
    return begin(operation, [this] { return SSL_do_handshake(ssl_.get()); });
  }

  /// One record's worth: small parts are joined, so that a head and its body are one record.
  std::string_view gathered(const Parts& parts) {
    constexpr std::size_t record = 16384;
    const auto first = std::find_if(parts.begin(), parts.end(), [](auto p) { return !p.empty(); });
    if (first->size() >= record / 2 || first + 1 == parts.end()) return *first;
    joined_.clear();
    for (auto part = first; part != parts.end() && joined_.size() < record; ++part)
      joined_.append(part->substr(0, record - joined_.size()));
    return joined_;
  }

  template <class Step>
  bool begin(Operation& operation, Step step) {
    if (unusable(operation)) return false;
    return advance(operation, step);
  }

  /// Tries `step` until it is done or must wait; true: it waits.
  template <class Step>
  bool advance(Operation& operation, Step step) {
    ERR_clear_error();
    const int done = step();
    if (done > 0) return false;
    const int error = SSL_get_error(ssl_.get(), done);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      failed_ = failed_ || error == SSL_ERROR_SSL || error == SSL_ERROR_SYSCALL;
      operation.result.status = error == SSL_ERROR_ZERO_RETURN ? IoStatus::end : IoStatus::broken;
      return false;
    }
    const auto what = error == SSL_ERROR_WANT_READ ? Socket::wait_read : Socket::wait_write;
    socket_.async_wait(what, [this, &operation, step](const error_code& failed) {
      if (failed) {
        operation.finish(result(failed, operation.result.bytes));
      } else if (!advance(operation, step)) {
        operation.finish(operation.result);
      }
    });
    return true;
  }

  void say_goodbye() {
    if (failed_ || !SSL_is_init_finished(ssl_.get())) return;
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
  }

  SslPointer ssl_;
  std::string joined_;
  bool failed_ = false;  ///< After a fatal error OpenSSL must not be asked to shut down.
};

std::unique_ptr<Stream> make_stream(Loop& loop, Socket socket, TlsContext* tls,
                                    std::string_view server_name, bool server) {
  if (tls == nullptr) return std::make_unique<PlainStream>(loop, std::move(socket));
  auto ssl = new_ssl(*tls, server, server_name);
  return std::make_unique<TlsStream>(loop, std::move(socket), std::move(ssl));
}

// --- Connecting.

/// Awaits a step of asio's that ends in an error code, for at most a time.
class AsioStep final : private Deadline {
 public:
  AsioStep(Loop& loop, Duration time_limit, std::function<void()> cancel)
      : Deadline(loop), ended(loop), cancel_(std::move(cancel)) {
    set_after(time_limit);
  }
  Delivery<error_code> ended;
  bool timed_out = false;

 private:
  void expired() override {
    timed_out = true;
    cancel_();
  }
  std::function<void()> cancel_;
};

class TcpConnector final : public Connector {
 public:
  TcpConnector(Loop& loop, UpstreamAddress address, std::shared_ptr<TlsContext> tls,
               std::string server_name)
      : loop_(loop),
        address_(std::move(address)),
        tls_(std::move(tls)),
        server_name_(std::move(server_name)),
        resolver_(loop.io()) {
    error_code error;
    const auto literal = asio::ip::make_address(address_.address.host, error);
    if (!error) literal_ = Tcp::endpoint(literal, address_.address.port);
  }

  Async<Connected> connect(Duration time_limit) override {
    Connected connected;
    std::vector<Tcp::endpoint> endpoints;
    if (literal_) {
      endpoints.push_back(*literal_);
    } else {
      co_await resolve(time_limit, endpoints, connected.failure);
    }
    const auto give_up = loop_.clock().boot_now() + time_limit;
    for (const auto& endpoint : endpoints) {
      const auto left = give_up - loop_.clock().boot_now();
      if (left <= Duration{0}) break;
      co_await connect_to(endpoint, left, connected);
      if (connected.stream) break;
    }
    co_return connected;
  }

 private:
  Async<> resolve(Duration time_limit, std::vector<Tcp::endpoint>& endpoints,
                  ConnectFailure& failure) {
    AsioStep step(loop_, time_limit, [this] { resolver_.cancel(); });
    resolver_.async_resolve(address_.address.host, std::to_string(address_.address.port),
                            [&](const error_code& error, const Tcp::resolver::results_type& all) {
                              for (const auto& entry : all) endpoints.push_back(entry.endpoint());
                              step.ended.set(error);
                            });
    co_await step.ended;
    failure = step.timed_out ? ConnectFailure::timed_out : ConnectFailure::unresolved;
    if (!endpoints.empty()) failure = ConnectFailure::refused;
  }

  Async<> connect_to(const Tcp::endpoint& endpoint, Duration time_limit, Connected& connected) {
    Socket socket(loop_.io());
    AsioStep step(loop_, time_limit, [&socket] {
      error_code ignored;
      socket.cancel(ignored);
    });
    socket.async_connect(endpoint, [&step](const error_code& error) { step.ended.set(error); });
    const error_code error = co_await step.ended;
    if (error) {
      connected.failure = step.timed_out ? ConnectFailure::timed_out : ConnectFailure::refused;
      co_return;
    }
    auto stream = make_stream(loop_, std::move(socket), tls_.get(), server_name_, false);
    if (tls_) {
      stream->expires_after(time_limit);
      const auto shaken = co_await stream->handshake();
      if (!shaken.ok()) {
        connected.failure = shaken.status == IoStatus::timed_out ? ConnectFailure::timed_out
                                                                 : ConnectFailure::handshake;
        co_return;
      }
      stream->never_expires();
    }
    connected.stream = std::move(stream);
  }

  Loop& loop_;
  UpstreamAddress address_;
  std::shared_ptr<TlsContext> tls_;
  std::string server_name_;
  std::optional<Tcp::endpoint> literal_;
  asio::ip::basic_resolver<Tcp, asio::io_context::executor_type> resolver_;
};

// --- Listening.

using Acceptor = asio::basic_socket_acceptor<Tcp, asio::io_context::executor_type>;

class TcpListener final : public Listener {
 public:
  TcpListener(Loop& loop, Acceptor acceptor)
      : loop_(loop), acceptor_(std::move(acceptor)), port_(acceptor_.local_endpoint().port()) {}

  std::uint16_t port() const override { return port_; }
  void start(std::function<void(std::unique_ptr<Stream>)> accepted) override {
    accepted_ = std::move(accepted);
    accept();
  }
  void use_tls(std::shared_ptr<TlsContext> tls) override { tls_ = std::move(tls); }
  void close() override {
    error_code ignored;
    acceptor_.close(ignored);
  }

 private:
  void accept() {
    acceptor_.async_accept([this](const error_code& error, Socket socket) {
      if (!acceptor_.is_open()) return;
      if (!error) {
        accepted_(make_stream(loop_, std::move(socket), tls_.get(), {}, true));
        accept();
      } else if (error == asio::error::connection_aborted) {
        accept();
      } else {
        // Out of descriptors or memory: what is served now must end first.
        loop_.run_after(std::chrono::milliseconds(100), [this] {
          if (acceptor_.is_open()) accept();
        });
      }
    });
  }

  Loop& loop_;
  Acceptor acceptor_;
  std::uint16_t port_;
  std::shared_ptr<TlsContext> tls_;
  std::function<void(std::unique_ptr<Stream>)> accepted_;
};

std::string text(const HostPort& address) {
  const bool literal6 = address.host.find(':') != std::string::npos;
  return (literal6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace

std::unique_ptr<Connector> make_connector(Loop& loop, UpstreamAddress address,
                                          std::shared_ptr<TlsContext> tls,
                                          std::string server_name) {
  return std::make_unique<TcpConnector>(loop, std::move(address), std::move(tls),
                                        std::move(server_name));
}

Result<std::unique_ptr<Listener>> listen(Loop& loop, const HostPort& address,
                                         std::string_view option) {
  const auto where = std::string(option) + " = \"" + text(address) + "\": ";
  error_code error;
  Tcp::resolver resolver(loop.io());
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), Tcp::resolver::passive, error);
  if (error || found.empty())
    return failure(ErrorCode::invalid, where + "no such address (" + error.message() + ")");
  const Tcp::endpoint endpoint = found.begin()->endpoint();
  Acceptor acceptor(loop.io());
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(4096, error);
  if (error) {
    return failure(ErrorCode::unavailable, where + "cannot listen: " + error.message() +
                                               "; choose another address or stop what uses it");
  }
  return std::unique_ptr<Listener>(std::make_unique<TcpListener>(loop, std::move(acceptor)));
}

}  // namespace einmal::gateway
