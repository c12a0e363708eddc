#include "own_client.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "einmal/base/random.hpp"
#include "einmal/client/client.hpp"

namespace einmal::test {
namespace {

constexpr std::string_view published = "http://shop.test";

class Balancer final : public client::Transport {
 public:
  explicit Balancer(std::function<std::uint16_t()> pick) : pick_(std::move(pick)) {}
  client::Exchange send(const client::WireRequest& request, Duration time,
                        client::Watcher* watcher) override {
    auto sent = request;
    sent.url.replace(0, published.size(), "http://127.0.0.1:" + std::to_string(pick_()));
    sent.headers.add("Host", "shop.test");  // The authority is part of what the request says.
    return curl_->send(sent, time, watcher);
  }

 private:
  std::function<std::uint16_t()> pick_;
  std::unique_ptr<client::Transport> curl_ = client::make_curl_transport();
};

client::ClientOptions little_patience() {
  client::ClientOptions options;
  options.patience.max_attempts = 4;
  options.patience.backoff_base = std::chrono::milliseconds(20);
  options.patience.backoff_cap = std::chrono::milliseconds(300);
  options.patience.deadline = std::chrono::seconds(8);
  options.patience.attempt_timeout = std::chrono::seconds(5);
  options.retry_budget = 100;
  return options;
}

}  // namespace

class OwnClient::Parts {
 public:
  Parts(const std::string& journal, std::uint64_t seed, std::function<std::uint16_t()> pick)
      : random(seed),
        transport(std::move(pick)),
        kept(open(journal)),
        client({*kept, transport, clock, random, pause}, little_patience()) {}

  std::unique_ptr<client::Journal> open(const std::string& path) {
    auto opened = client::Journal::open(path, random, clock.wall_now());
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
  }

  SystemClock clock;
  SeededRandom random;
  client::SystemPause pause;
  Balancer transport;
  std::unique_ptr<client::Journal> kept;
  client::Client client;
};

OwnClient::OwnClient(const std::string& journal, std::uint64_t seed,
                     std::function<std::uint16_t()> pick)
    : parts_(std::make_unique<Parts>(journal, seed, std::move(pick))) {}
OwnClient::~OwnClient() = default;

OwnClient::Said OwnClient::order(const std::string& key, const std::string& body) {
  client::Request request;
  request.url = std::string(published) + "/orders";
  request.headers = {{"Content-Type", "application/json"}, {"X-Caller", "alice"}};
  request.body = body;
  request.key = key;
  auto outcome = parts_->client.send(key, request);
  if (!outcome) throw std::runtime_error(outcome.error().message);
  return {std::move(outcome->verdict), outcome->attempts};
}

}  // namespace einmal::test
