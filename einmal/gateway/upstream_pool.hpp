#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "einmal/gateway/config.hpp"
#include "einmal/gateway/inbox.hpp"

namespace einmal::gateway {

class UpstreamPool;

/// A connection to the upstream with what was read from it and not used yet.
class UpstreamConnection : public Inbox<http::ResponseParser> {
 public:
  /// Closes it, unless it went back to the pool, and lets the next in the queue have its place.
  ~UpstreamConnection();
  UpstreamConnection(const UpstreamConnection&) = delete;
  UpstreamConnection& operator=(const UpstreamConnection&) = delete;

  /// Whether it carried an exchange before this one.
  bool is_reused() const { return reused_; }

 private:
  friend class UpstreamPool;
  UpstreamConnection(UpstreamPool& pool, std::size_t address, std::unique_ptr<Stream> stream,
                     const http::ParserLimits& limits)
      : Inbox(std::move(stream), limits), pool_(pool), address_(address) {}

  UpstreamPool& pool_;
  std::size_t address_;
  bool reused_ = false;
  BootTime idle_since_{};
};
using UpstreamHandle = std::unique_ptr<UpstreamConnection>;

/// Why there is no connection. Nothing was sent.
enum class NoUpstream : std::uint8_t { unreachable, timed_out, queue_full };

struct Acquired {
  UpstreamHandle connection;
  NoUpstream why = NoUpstream::unreachable;  ///< Without a connection.
};

/// Connections to one or several upstream addresses, at most `connections` in all. Idle ones are
/// used the freshest first, only while they idled less than `idle`, and only if a poll shows
/// neither data nor an end. Addresses take turns; one that fails to connect is passed over for a
/// while. Must outlive its connections. Loop's thread only.
class UpstreamPool {
 public:
  UpstreamPool(Loop& loop, UpstreamConfig config, std::shared_ptr<TlsContext> tls,
               const http::ParserLimits& limits);
  ~UpstreamPool();

  /// A connection on which nothing of this exchange was sent. Waits for a place and for the
  /// handshakes at most `time_limit` in all, of which each address has an equal share of what is
  /// left, and tries the next address where one cannot be connected to.
  Async<Acquired> acquire(Duration time_limit);
  /// After a whole exchange that left the connection usable.
  void give_back(UpstreamHandle connection);

  std::size_t open() const { return open_; }
  std::size_t queued() const { return queue_.size(); }

 private:
  friend class UpstreamConnection;
  struct Address;
  class Waiting;

  UpstreamHandle take_idle(std::size_t address);
  std::vector<std::size_t> in_turn();
  void drop_one_idle();
  void closed();
  void expire_idle();

  Loop& loop_;
  UpstreamConfig config_;
  http::ParserLimits limits_;
  std::vector<Address> addresses_;
  std::size_t turn_ = 0;
  std::size_t open_ = 0;
  std::deque<Waiting*> queue_;
  class Sweeper;
  std::unique_ptr<Sweeper> sweeper_;
};

}  // namespace einmal::gateway
