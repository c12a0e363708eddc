#include "einmal/testing/tcp_gate.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

namespace einmal::test {

struct TcpGate::Pair {
  Socket client, server;
  std::size_t sent_to_client = 0, sent_to_server = 0;
  bool client_done = false, server_done = false;  ///< That side sent its FIN.
  bool cut = false;
  std::thread thread;
};

TcpGate::TcpGate(std::uint16_t target) {
  settings_.target = target;
  acceptor_ = std::thread([this] { accept_connections(); });
}

TcpGate::TcpGate(std::string unix_socket) {
  settings_.unix_socket = std::move(unix_socket);
  acceptor_ = std::thread([this] { accept_connections(); });
}

TcpGate::~TcpGate() {
  change([](Settings& s) { s.stopping = true; });
  listener_.stop();
  acceptor_.join();
  cut();
  for (auto& pair : pairs_) {
    {
      // Wakes a relay that writes to somebody who does not read.
      const std::lock_guard lock(mutex_);
      if (pair.client.is_open()) pair.client.shut_down();
      if (pair.server.is_open()) pair.server.shut_down();
    }
    pair.thread.join();
  }
}

template <class Change>
void TcpGate::change(Change apply) {
  const std::lock_guard lock(mutex_);
  apply(settings_);
  changed_.notify_all();
}

void TcpGate::redirect(std::uint16_t target) {
  change([=](Settings& s) { s.target = target; });
}
void TcpGate::refuse(bool on) {
  change([=](Settings& s) { s.refuse = on; });
}
void TcpGate::stall(bool on) {
  change([=](Settings& s) { s.stall = on; });
}
void TcpGate::slice(std::size_t bytes) {
  change([=](Settings& s) { s.slice = bytes; });
}
void TcpGate::delay(Milliseconds time) {
  change([=](Settings& s) { s.delay = time; });
}
void TcpGate::cut_to_client_after(std::optional<std::size_t> bytes) {
  change([=](Settings& s) { s.to_client = bytes; });
}
void TcpGate::cut_to_server_after(std::optional<std::size_t> bytes) {
  change([=](Settings& s) { s.to_server = bytes; });
}

void TcpGate::cut() {
  const std::lock_guard lock(mutex_);
  for (auto& pair : pairs_) pair.cut = true;
  changed_.notify_all();
}

void TcpGate::accept_connections() {
  while (true) {
    auto client = listener_.accept();
    std::unique_lock lock(mutex_);
    if (!client.is_open() || settings_.stopping) return;
    ++accepted_;
    if (settings_.refuse) {
      client.reset();
      continue;
    }
    const auto target = settings_.target;
    const auto unix_socket = settings_.unix_socket;
    lock.unlock();
    Socket server;
    try {
      server = unix_socket.empty() ? Socket::connect(target) : Socket::connect_unix(unix_socket);
    } catch (const std::exception&) {
      client.reset();
      continue;
    }
    lock.lock();
    auto& pair = pairs_.emplace_back();
    pair.client = std::move(client);
    pair.server = std::move(server);
    pair.thread = std::thread([this, &pair] { relay(pair); });
  }
}

void TcpGate::relay(Pair& pair) {
  while (!(pair.client_done && pair.server_done)) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !settings_.stall || pair.cut; });
      if (pair.cut) break;
    }
    // Short, because settings and `cut` are looked at between two rounds.
    std::array<pollfd, 2> watched{
        pollfd{pair.client_done ? -1 : pair.client.descriptor(), POLLIN, 0},
        pollfd{pair.server_done ? -1 : pair.server.descriptor(), POLLIN, 0}};
    if (::poll(watched.data(), watched.size(), 5) <= 0) continue;
    if (watched[0].revents != 0 && !pass(pair, false)) break;
    if (watched[1].revents != 0 && !pass(pair, true)) break;
  }
  const std::lock_guard lock(mutex_);
  const bool clean = pair.client_done && pair.server_done;
  if (clean) {
    pair.client.close();
    pair.server.close();
  } else {
    pair.client.reset();
    pair.server.reset();
  }
}

/// One piece in one direction. False: the pair is to be reset.
bool TcpGate::pass(Pair& pair, bool to_client) {
  Settings now;
  {
    const std::lock_guard lock(mutex_);
    now = settings_;
    if (pair.cut) return false;
    if (now.stall) return true;
  }
  auto& from = to_client ? pair.server : pair.client;
  auto& to = to_client ? pair.client : pair.server;
  auto& sent = to_client ? pair.sent_to_client : pair.sent_to_server;
  const auto limit = to_client ? now.to_client : now.to_server;
  if (limit && sent >= *limit) return false;
  std::size_t most = now.slice ? now.slice : 65536;
  if (limit) most = std::min(most, *limit - sent);

  const auto piece = from.read_some(Milliseconds(0), most);
  if (piece.kind == Incoming::Kind::timeout) return true;
  if (piece.kind == Incoming::Kind::reset) return false;
  if (piece.kind == Incoming::Kind::end) {
    (to_client ? pair.server_done : pair.client_done) = true;
    to.half_close();
    return true;
  }
  if (now.delay.count() > 0) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, now.delay, [&] { return pair.cut; });
  }
  if (!to.write(piece.bytes)) return false;
  sent += piece.bytes.size();
  if (to_client) to_clients_ += piece.bytes.size();
  return !limit || sent < *limit;
}

}  // namespace einmal::test
