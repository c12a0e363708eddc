#include "einmal/gateway/relay.hpp"

#include "einmal/http/replay_headers.hpp"
#include "einmal/http/write.hpp"

namespace einmal::gateway {

Async<http::Fed> next_step(UpstreamConnection& upstream, Duration patience, std::size_t read_size,
                           bool& timed_out) {
  for (;;) {
    auto fed = upstream.poll();
    if (fed.step != http::Step::need_more) co_return fed;
    upstream.stream().expires_after(patience);
    const IoResult got = co_await upstream.fill(read_size);
    if (got.ok()) continue;
    timed_out = got.status == IoStatus::timed_out;
    fed = upstream.parser().finish(got.status == IoStatus::end ? http::ResponseParser::End::clean
                                                               : http::ResponseParser::End::broken);
    co_return fed;
  }
}

Async<Relayed> relay_body(ClientConnection& client, UpstreamConnection& upstream, std::string& out,
                          bool chunked, Duration patience) {
  bool timed_out = false;
  for (;;) {
    auto fed = upstream.poll();
    if (fed.step == http::Step::need_more) {
      if (!out.empty()) {
        const bool ok = co_await client.write(out);
        out.clear();
        if (!ok) co_return Relayed::client_gone;
      }
      fed = co_await next_step(upstream, patience, Buffer::large, timed_out);
    }
    bool ok = false;
    if (fed.step == http::Step::body && chunked) {
      const http::ChunkHead size(fed.body.size());
      out.append(size.view());
      ok = co_await client.write(out, fed.body, http::chunk_end);
    } else if (fed.step == http::Step::body) {
      ok = co_await client.write(out, fed.body);
    } else if (fed.step == http::Step::complete) {
      if (chunked) {
        http::prepare_trailers(upstream.parser().trailers(), {}, std::nullopt);
        http::append_last_chunk(out, upstream.parser().trailers());
      }
      if (!out.empty()) co_await client.write(out);
      co_return Relayed::whole;
    } else {
      if (!out.empty()) co_await client.write(out);
      co_return Relayed::upstream_failed;
    }
    out.clear();
    if (!ok) co_return Relayed::client_gone;
  }
}

}  // namespace einmal::gateway
