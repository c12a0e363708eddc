#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "einmal/testing/socket.hpp"

namespace einmal::test {

/// A TCP relay between a client and a server that can be told to misbehave. Thread-safe; a setting
/// holds from now on, for open connections as well.
class TcpGate {
 public:
  explicit TcpGate(std::uint16_t target);
  /// Before a server that listens on a Unix socket only.
  explicit TcpGate(std::string unix_socket);
  ~TcpGate();
  TcpGate(const TcpGate&) = delete;
  TcpGate& operator=(const TcpGate&) = delete;

  std::uint16_t port() const { return listener_.port(); }

  /// Where new connections go.
  void redirect(std::uint16_t target);
  /// Resets every open connection on both sides.
  void cut();
  /// New connections are reset as soon as they are made.
  void refuse(bool on);
  /// Nothing moves in either direction; connections stay open.
  void stall(bool on);
  /// Passes on at most this many bytes at a time, each as a segment of its own; 0: as they come.
  void slice(std::size_t bytes);
  /// Holds each piece back for so long.
  void delay(Milliseconds time);
  /// Once so many bytes went to the client of a connection, it is reset on both sides. Nothing: no
  /// limit.
  void cut_to_client_after(std::optional<std::size_t> bytes);
  /// The same towards the server.
  void cut_to_server_after(std::optional<std::size_t> bytes);

  /// Connections accepted, and bytes passed on to clients so far.
  std::size_t connections() const { return accepted_; }
  std::size_t bytes_to_clients() const { return to_clients_; }

 private:
  struct Pair;
  struct Settings {
    std::uint16_t target = 0;
    std::string unix_socket;  ///< Instead of `target`, unless empty.
    bool refuse = false, stall = false, stopping = false;
    std::size_t slice = 0;
    Milliseconds delay{0};
    std::optional<std::size_t> to_client, to_server;
  };

  void accept_connections();
  void relay(Pair& pair);
  bool pass(Pair& pair, bool to_client);
  template <class Change>
  void change(Change apply);

  Listener listener_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Settings settings_;
  std::list<Pair> pairs_;
  std::atomic<std::size_t> accepted_{0}, to_clients_{0};
  std::thread acceptor_;
};

}  // namespace einmal::test
