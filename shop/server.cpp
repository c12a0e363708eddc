#include "shop/server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace einmal::shop {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::uint64_t body_limit = 16 << 20;
constexpr std::uint32_t head_limit = 64 << 10;
constexpr std::size_t connection_limit = 2048;

using Parser = http::request_parser<http::string_body>;

Request as_request(Parser& parser) {
  auto& message = parser.get();
  Request request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) request.headers.add(field.name_string(), field.value());
  request.body = std::move(message.body());
  return request;
}

std::string as_bytes(const Reply& reply, bool head_only, bool keep_alive) {
  std::string bytes =
      "HTTP/1.1 " + std::to_string(reply.status) + " " +
      std::string(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(reply.status)))) +
      "\r\n";
  for (const auto& [name, value] : reply.headers)
    bytes.append(name).append(": ").append(value).append("\r\n");
  if (reply.status != 204) bytes += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  if (!keep_alive) bytes += "Connection: close\r\n";
  bytes += "\r\n";
  return head_only ? bytes : bytes + reply.body;
}

/// Reads one request. False: the connection is over, or what came is no request.
bool read_request(tcp::socket& socket, boost::beast::flat_buffer& buffer, Parser& parser) {
  error_code error;
  bool continued = false;
  while (!parser.is_done()) {
    if (buffer.size() != 0) {
      buffer.consume(parser.put(buffer.data(), error));
      if (error && error != http::error::need_more) return false;
      if (parser.is_done()) break;
      if (!error && buffer.size() != 0) continue;
    }
    if (parser.is_header_done() && !std::exchange(continued, true) &&
        boost::beast::iequals(parser.get()[http::field::expect], "100-continue"))
      asio::write(socket, asio::buffer("HTTP/1.1 100 Continue\r\n\r\n", 25), error);
    const auto got = socket.read_some(buffer.prepare(16384), error);
    if (error) return false;
    buffer.commit(got);
  }
  return true;
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(Shop& shop) : shop_(shop), acceptor_(context_) {}
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> listen(const std::string& host, std::uint16_t port);
  std::uint16_t port() const { return port_; }

 private:
  struct Connection {
    tcp::socket socket;
    std::thread thread;
    bool done = false;
  };

  void accept_connections();
  void serve(Connection& connection);
  std::optional<Reply> reply_to(Connection& connection, const Request& request);
  bool pause(std::chrono::milliseconds time);
  void make_room();
  void reap(bool all);

  Shop& shop_;
  asio::io_context context_;
  tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::list<Connection> connections_;
  std::thread thread_;
};

Result<void> Server::Impl::listen(const std::string& host, std::uint16_t port) {
  error_code error;
  tcp::resolver resolver(context_);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty())
    return failure(ErrorCode::invalid, "--listen: no such host " + host + ": " + error.message());
  const auto endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(1024, error);
  if (error) {
    return failure(ErrorCode::unavailable, "--listen: " + host + ":" + std::to_string(port) + ": " +
                                               error.message() + "; choose another, or 0");
  }
  port_ = acceptor_.local_endpoint().port();
  thread_ = std::thread([this] { accept_connections(); });
  return {};
}

Server::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    for (auto& connection : connections_) {
      error_code ignored;
      if (!connection.done) connection.socket.shutdown(tcp::socket::shutdown_both, ignored);
    }
  }
  if (thread_.joinable()) {
    // accept() blocks; only this wakes it.
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    thread_.join();
  }
  reap(true);
}

void Server::Impl::accept_connections() {
  while (true) {
    error_code error;
    auto socket = acceptor_.accept(context_, error);
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    lock.unlock();
    if (error) {  // Out of descriptors, most likely: some connection will end.
      pause(std::chrono::milliseconds(10));
      continue;
    }
    make_room();
    lock.lock();
    if (stopping_) return;
    socket.set_option(tcp::no_delay(true), error);
    auto& connection = connections_.emplace_back(Connection{std::move(socket), {}, false});
    connection.thread = std::thread([this, &connection] { serve(connection); });
  }
}

void Server::Impl::make_room() {
  while (true) {
    reap(false);
    std::unique_lock lock(mutex_);
    if (stopping_ || connections_.size() < connection_limit) return;
    changed_.wait(lock, [&] {
      return stopping_ || std::any_of(connections_.begin(), connections_.end(),
                                      [](const auto& connection) { return connection.done; });
    });
  }
}

void Server::Impl::reap(bool all) {
  std::list<Connection> finished;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = connections_.begin(); it != connections_.end();) {
      const auto next = std::next(it);
      if (all || it->done) finished.splice(finished.end(), connections_, it);
      it = next;
    }
  }
  for (auto& connection : finished) connection.thread.join();
}

void Server::Impl::serve(Connection& connection) {
  boost::beast::flat_buffer buffer;
  while (true) {
    Parser parser;
    parser.eager(true);
    parser.body_limit(body_limit);
    parser.header_limit(head_limit);
    if (!read_request(connection.socket, buffer, parser)) break;
    const bool keep_alive = parser.get().keep_alive();
    const auto request = as_request(parser);
    const auto reply = reply_to(connection, request);
    if (!reply) break;
    error_code error;
    const auto bytes = as_bytes(*reply, request.method == "HEAD", keep_alive);
    asio::write(connection.socket, asio::buffer(bytes), error);
    if (error || !keep_alive) break;
  }
  const std::lock_guard lock(mutex_);
  error_code ignored;
  connection.socket.close(ignored);
  connection.done = true;
  changed_.notify_all();
}

/// Nothing: the connection is to be closed without an answer.
std::optional<Reply> Server::Impl::reply_to(Connection& connection, const Request& request) {
  const auto steering = steering_of(request);
  if (!steering) return Reply{400, {}, "an X-Demo header cannot be understood\n"};
  const auto pause_for = [this](std::chrono::milliseconds time) { return pause(time); };
  if (steering->fault != Steering::Fault::hang) return shop_.handle(request, *steering, pause_for);
  if (!pause_for(steering->delay)) return std::nullopt;
  error_code error;
  char byte = 0;
  while (!error) connection.socket.read_some(asio::buffer(&byte, 1), error);
  return std::nullopt;
}

bool Server::Impl::pause(std::chrono::milliseconds time) {
  if (time.count() == 0) return true;
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [&] { return stopping_; });
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(Shop& shop, const std::string& host,
                                              std::uint16_t port) {
  auto impl = std::make_unique<Impl>(shop);
  if (auto listening = impl->listen(host, port); !listening) return pass_on(listening);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const { return impl_->port(); }

}  // namespace einmal::shop
