#include "einmal/gateway/upstream_pool.hpp"

#include <algorithm>

namespace einmal::gateway {

struct UpstreamPool::Address {
  std::unique_ptr<Connector> connector;
  std::vector<UpstreamHandle> idle;  ///< The freshest last.
  BootTime down_until{};
  std::uint32_t failures = 0;  ///< In a row.
};

/// One acquire in the queue for a place.
class UpstreamPool::Waiting final : private Deadline {
 public:
  Waiting(UpstreamPool& pool, Duration time_limit)
      : Deadline(pool.loop_), came(pool.loop_), pool_(pool) {
    pool_.queue_.push_back(this);
    set_after(time_limit);
  }
  ~Waiting() { leave(); }
  void turn_came() {
    leave();
    came.set(true);
  }

  Delivery<bool> came;

 private:
  void expired() override {
    leave();
    came.set(false);
  }
  void leave() {
    clear();
    std::erase(pool_.queue_, this);
  }
  UpstreamPool& pool_;
};

/// Closes what idled too long, so that the upstream need not.
class UpstreamPool::Sweeper final : private Deadline {
 public:
  explicit Sweeper(UpstreamPool& pool) : Deadline(pool.loop_), pool_(pool) {}
  void wake() {
    if (!is_set()) set_after(pool_.config_.idle);
  }

 private:
  void expired() override { pool_.expire_idle(); }
  UpstreamPool& pool_;
};

UpstreamConnection::~UpstreamConnection() {
  stream().close();
  pool_.closed();
}

UpstreamPool::UpstreamPool(Loop& loop, UpstreamConfig config, std::shared_ptr<TlsContext> tls,
                           const http::ParserLimits& limits)
    : loop_(loop),
      config_(std::move(config)),
      limits_(limits),
      sweeper_(std::make_unique<Sweeper>(*this)) {
  for (const auto& address : config_.addresses) {
    addresses_.emplace_back();
    addresses_.back().connector =
        make_connector(loop_, address, address.tls ? tls : nullptr,
                       config_.tls.server_name.value_or(address.address.host));
  }
}

UpstreamPool::~UpstreamPool() {
  for (auto& address : addresses_) address.idle.clear();
}

/// The order in which addresses are tried: in turn, those last that failed to connect lately, since
/// trying is better than refusing.
std::vector<std::size_t> UpstreamPool::in_turn() {
  std::vector<std::size_t> order(addresses_.size());
  turn_ = (turn_ + 1) % addresses_.size();
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = (turn_ + i) % order.size();
  const auto now = loop_.now();
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t index) { return addresses_[index].down_until <= now; });
  return order;
}

UpstreamHandle UpstreamPool::take_idle(std::size_t index) {
  auto& idle = addresses_[index].idle;
  const auto now = idle.empty() ? BootTime{} : loop_.clock().boot_now();
  while (!idle.empty()) {
    auto connection = std::move(idle.back());
    idle.pop_back();
    if (now - connection->idle_since_ >= config_.idle) continue;
    if (!connection->stream().is_quiet()) continue;
    return connection;
  }
  return nullptr;
}

Async<Acquired> UpstreamPool::acquire(Duration time_limit) {
  const auto give_up = loop_.now() + time_limit;
  Acquired acquired;
  if (addresses_.size() == 1) acquired.connection = take_idle(0);
  if (acquired.connection) co_return acquired;
  const std::vector<std::size_t> order = in_turn();
  auto left = static_cast<Duration::rep>(order.size());
  for (const std::size_t index : order) {
    auto& address = addresses_[index];
    // One that says nothing must not use up the time of those after it.
    const Duration share = (give_up - loop_.now()) / left--;
    acquired.connection = take_idle(index);
    if (!acquired.connection && open_ >= config_.connections) drop_one_idle();
    while (!acquired.connection && open_ >= config_.connections) {
      if (queue_.size() >= 16 * config_.connections) {
        acquired.why = NoUpstream::queue_full;
        co_return acquired;
      }
      Waiting waiting(*this, give_up - loop_.now());
      const bool came = co_await waiting.came;
      acquired.why = NoUpstream::timed_out;
      if (!came) co_return acquired;
      acquired.connection = take_idle(index);
    }
    if (acquired.connection) co_return acquired;

    ++open_;
    auto connected = co_await address.connector->connect(share);
    if (connected.stream) {
      address.failures = 0;
      address.down_until = {};
      acquired.connection.reset(
          new UpstreamConnection(*this, index, std::move(connected.stream), limits_));
      co_return acquired;
    }
    closed();
    address.failures = std::min(address.failures + 1, 6U);
    address.down_until = loop_.now() + std::chrono::milliseconds(50) * (1 << address.failures);
    acquired.why = connected.failure == ConnectFailure::timed_out ? NoUpstream::timed_out
                                                                  : NoUpstream::unreachable;
  }
  co_return acquired;
}

void UpstreamPool::give_back(UpstreamHandle connection) {
  if (config_.reuse == UpstreamReuse::never || !connection->buffer().empty()) return;
  connection->reused_ = true;
  connection->idle_since_ = loop_.clock().boot_now();
  connection->stream().never_expires();
  addresses_[connection->address_].idle.push_back(std::move(connection));
  sweeper_->wake();
  if (!queue_.empty()) queue_.front()->turn_came();
}

void UpstreamPool::drop_one_idle() {
  for (auto& address : addresses_) {
    if (address.idle.empty()) continue;
    address.idle.erase(address.idle.begin());
    return;
  }
}

void UpstreamPool::closed() {
  --open_;
  if (!queue_.empty()) queue_.front()->turn_came();
}

void UpstreamPool::expire_idle() {
  bool left = false;
  for (auto& address : addresses_) {
    const auto too_old = [&](const UpstreamHandle& c) {
      return loop_.now() - c->idle_since_ >= config_.idle;
    };
    const auto fresh = std::find_if_not(address.idle.begin(), address.idle.end(), too_old);
    address.idle.erase(address.idle.begin(), fresh);
    left = left || !address.idle.empty();
  }
  if (left) sweeper_->wake();
}

}  // namespace einmal::gateway
