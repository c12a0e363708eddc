#include "einmal/gateway/small_exchange.hpp"

#include "einmal/gateway/relay.hpp"
#include "einmal/http/write.hpp"

namespace einmal::gateway {

Async<std::optional<SmallAnswer>> exchange(UpstreamPool& pool, const http::RequestHead& head,
                                           const UpstreamTimes& times, std::size_t body_limit) {
  std::optional<SmallAnswer> answer;
  Acquired acquired = co_await pool.acquire(times.connect);
  if (!acquired.connection) co_return answer;
  UpstreamHandle connection = std::move(acquired.connection);
  std::string bytes;
  http::append_head(bytes, head);
  connection->parser().reset(head.method);
  connection->stream().expires_after(times.answer);
  const IoResult sent = co_await connection->stream().write(bytes);
  if (!sent.ok()) co_return answer;
  SmallAnswer read;
  bool timed_out = false;
  for (;;) {
    const http::Fed fed = co_await next_step(*connection, times.answer, Buffer::small, timed_out);
    if (fed.step == http::Step::error) co_return answer;
    if (fed.step == http::Step::head) read.head = std::move(connection->parser().head());
    if (read.body.size() + fed.body.size() > body_limit) co_return answer;
    read.body.append(fed.body);
    if (fed.step != http::Step::complete) continue;
    if (connection->parser().reusable()) pool.give_back(std::move(connection));
    answer = std::move(read);
    co_return answer;
  }
}

}  // namespace einmal::gateway
