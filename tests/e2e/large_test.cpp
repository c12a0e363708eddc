#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>

#include "support/gateway.hpp"

/// Bodies of a gigabyte through unmatched routes, in bounded memory.

namespace einmal::test {
namespace {

constexpr std::size_t gigabyte = std::size_t{1} << 30;
constexpr std::size_t memory_limit_kib = 64 * 1024;

/// The most memory the process ever had resident, in KiB.
std::size_t peak_memory(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6));
  }
  return 0;
}

/// Counts `size` bytes after a head; answers with `size` bytes if `sends`.
class BulkServer {
 public:
  explicit BulkServer(bool sends) : thread_([this, sends] { serve(sends); }) {}
  ~BulkServer() {
    listener_.stop();
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(listener_.port()); }
  std::size_t received() const { return received_; }

 private:
  void serve(bool sends) {
    auto socket = listener_.accept();
    if (!socket.is_open()) return;
    std::string head;
    while (head.find("\r\n\r\n") == std::string::npos) {
      auto piece = socket.read_some();
      if (piece.kind != Incoming::Kind::data) return;
      head += piece.bytes;
    }
    if (sends) {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(gigabyte) + "\r\n\r\n");
      const std::string block(1 << 20, 'd');
      for (std::size_t sent = 0; sent < gigabyte; sent += block.size()) {
        if (!socket.write(block)) return;
      }
      return;
    }
    received_ = head.size() - head.find("\r\n\r\n") - 4;
    while (received_ < gigabyte) {
      auto piece = socket.read_some(patience, 1 << 20);
      if (piece.kind != Incoming::Kind::data) return;
      received_ += piece.bytes.size();
    }
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    socket.read_some();
  }

  Listener listener_;
  std::size_t received_ = 0;
  std::thread thread_;
};

class Large : public GatewayTest {};

TEST_F(Large, an_upload_of_a_gigabyte_passes_in_bounded_memory) {
  BulkServer upstream(false);
  open({.upstream = upstream.url()});
  RawClient client(gateway_->port());
  client.send("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(gigabyte) +
              "\r\n\r\n");
  const std::string block(1 << 20, 'u');
  for (std::size_t sent = 0; sent < gigabyte; sent += block.size()) ASSERT_TRUE(client.send(block));
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(upstream.received(), gigabyte);
  EXPECT_LT(peak_memory(gateway_->process().pid()), memory_limit_kib);
}

TEST_F(Large, a_download_of_a_gigabyte_passes_in_bounded_memory) {
  BulkServer upstream(true);
  open({.upstream = upstream.url()});
  RawClient client(gateway_->port());
  client.send("GET /download HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  std::size_t received = 0;
  while (true) {
    const auto piece = client.read_some(patience, 1 << 20);
    if (piece.kind != Incoming::Kind::data) break;
    received += piece.bytes.size();
  }
  EXPECT_GT(received, gigabyte);
  EXPECT_LT(received, gigabyte + 2000);
  EXPECT_LT(peak_memory(gateway_->process().pid()), memory_limit_kib);
}

}  // namespace
}  // namespace einmal::test
