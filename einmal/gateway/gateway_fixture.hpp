#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/gateway/gateway.hpp"
#include "einmal/sqlite/sqlite_store.hpp"
#include "einmal/testing/raw_client.hpp"
#include "einmal/testing/scripted_upstream.hpp"

namespace einmal::test {

/// A directory that goes with the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "einmal-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// A gateway on a thread of its own, on a SQLite file, before a scripted upstream.
class GatewayTest : public ::testing::Test {
 protected:
  GatewayTest() {
    config_.listen.port = 0;
    config_.upstream.addresses.push_back({false, {"127.0.0.1", upstream_.port()}});
    config_.drain = std::chrono::seconds(5);
    OperationConfig orders;
    orders.name = "create-order";
    orders.match = {"POST", "/orders"};
    config_.operations.push_back(orders);
  }
  ~GatewayTest() override { stop(); }

  OperationConfig& operation() { return config_.operations.front(); }

  void start() {
    store_ = open_sqlite_store(directory_.file("einmal.db"), {}, clock_, random_).value();
    start_on(*store_);
  }
  void start_on(Store& store) {
    Gateway::Hooks hooks;
    hooks.events = events_;
    gateway_ = std::make_unique<Gateway>(config_, store, clock_, random_, *observer_, hooks);
    const auto opened = gateway_->open();
    ASSERT_TRUE(opened) << opened.error().message;
    thread_ = std::thread([this] { gateway_->run(); });
  }
  void drain() {
    gateway_->begin_drain();
    thread_.join();
  }
  void stop() {
    if (thread_.joinable()) {
      gateway_->stop_now();
      thread_.join();
    }
    gateway_.reset();
    store_.reset();
  }

  HttpRequest order(const std::string& key, const std::string& body = R"({"amount":10})") const {
    HttpRequest request;
    request.target = "/orders";
    request.body = body;
    request.headers = {{"Content-Type", "application/json"}, {"X-Caller", "acme"}};
    if (!key.empty()) request.headers.emplace_back("Idempotency-Key", key);
    return request;
  }
  HttpAnswer send(const HttpRequest& request) { return HttpClient(gateway_->port()).send(request); }
  HttpAnswer send_order(const std::string& key, const std::string& body = R"({"amount":10})") {
    return send(order(key, body));
  }

  TemporaryDirectory directory_;
  ScriptedUpstream upstream_;
  SystemClock clock_;
  SystemRandom random_;
  Observer* observer_ = &no_observer();
  GatewayEvents* events_ = nullptr;
  GatewayConfig config_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Gateway> gateway_;
  std::thread thread_;
};

}  // namespace einmal::test
