#include "einmal/gateway/tunnel.hpp"

namespace einmal::gateway {

namespace {

/// Copies until `from` ends; breaks both where one is broken.
template <class From, class To>
Async<> copy(From& from, To& to) {
  for (;;) {
    const auto bytes = from.buffer().view();
    if (!bytes.empty()) {
      const IoResult wrote = co_await to.stream().write(bytes);
      from.buffer().consume(bytes.size());
      if (!wrote.ok()) break;
    }
    const IoResult got = co_await from.fill(Buffer::large);
    if (got.ok()) continue;
    if (got.status != IoStatus::end) break;
    to.stream().shut_down();
    co_return;
  }
  from.stream().close();
  to.stream().close();
}

}  // namespace

Async<> tunnel(ClientConnection& client, UpstreamConnection& upstream) {
  client.stream().never_expires();
  upstream.stream().never_expires();
  Async<> up = copy(client, upstream);
  up.start();
  co_await copy(upstream, client);
  co_await up;
}

}  // namespace einmal::gateway
