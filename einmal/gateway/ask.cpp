#include "einmal/gateway/ask.hpp"

#include "einmal/gateway/relay.hpp"
#include "einmal/http/replay_headers.hpp"
#include "einmal/http/target.hpp"
#include "einmal/http/write.hpp"

namespace einmal::gateway {

namespace {

/// What may be read of an answer's body to use the connection again.
constexpr std::size_t body_limit = std::size_t{64} << 10;

bool speaks_of_the_body(std::string_view name) {
  return http::istarts_with(name, "Content-") || http::iequals(name, "Expect") ||
         http::iequals(name, "Host") || http::istarts_with(name, "X-Original-") ||
         http::istarts_with(name, "If-") || http::iequals(name, "Range");
}

}  // namespace

Result<std::shared_ptr<AskedService>> AskedService::make(Loop& loop, const std::string& url,
                                                         const UpstreamConfig& like,
                                                         const http::ParserLimits& limits) {
  const auto taken_apart = http::parse_absolute_target(url);
  const auto authority = taken_apart ? http::parse_authority(taken_apart->authority) : std::nullopt;
  if (!authority)
    return failure(ErrorCode::invalid, "auth-request:" + url + ": not an http or https URL");
  const bool secure = http::iequals(taken_apart->scheme, "https");
  UpstreamConfig config = like;
  std::string host = authority->host;
  if (host.front() == '[') host = host.substr(1, host.size() - 2);
  config.addresses = {
      {secure, {host, authority->port.value_or(secure ? std::uint16_t{443} : std::uint16_t{80})}}};
  config.tls.server_name.reset();
  std::shared_ptr<TlsContext> tls;
  if (secure) {
    auto made = client_tls(config.tls);
    if (!made) return pass_on(made);
    tls = std::move(*made);
  }
  std::shared_ptr<AskedService> service(new AskedService);
  service->host_ = http::to_string(*authority, taken_apart->scheme);
  service->path_ = taken_apart->rest.empty() ? "/" : std::string(taken_apart->rest);
  service->pool_ = std::make_unique<UpstreamPool>(loop, config, std::move(tls), limits);
  return service;
}

Async<std::optional<http::ResponseHead>> AskedService::ask(const http::RequestHead& request,
                                                           const UpstreamTimes& times) {
  std::optional<http::ResponseHead> answer;
  Acquired acquired = co_await pool_->acquire(times.connect);
  if (!acquired.connection) co_return answer;
  UpstreamHandle connection = std::move(acquired.connection);

  http::RequestHead head;
  head.method = "GET";
  head.target = path_;
  head.headers = request.headers;
  http::prepare_for_upstream(head.headers, {});
  head.headers.remove_if(
      [](const http::HeaderLine& line) { return speaks_of_the_body(line.name); });
  head.headers.add("Host", host_);
  head.headers.add("X-Original-Method", request.method);
  head.headers.add("X-Original-URI", request.target);
  std::string bytes;
  http::append_head(bytes, head);

  connection->parser().reset(head.method);
  connection->stream().expires_after(times.answer);
  const IoResult sent = co_await connection->stream().write(bytes);
  if (!sent.ok()) co_return answer;
  bool timed_out = false;
  for (std::size_t read = 0; read <= body_limit;) {
    const http::Fed fed = co_await next_step(*connection, times.answer, Buffer::small, timed_out);
    if (fed.step == http::Step::error) {
      answer.reset();
      co_return answer;
    }
    if (fed.step == http::Step::head) answer = std::move(connection->parser().head());
    if (fed.step == http::Step::complete) {
      if (connection->parser().reusable()) pool_->give_back(std::move(connection));
      break;
    }
    read += fed.body.size();
  }
  co_return answer;
}

}  // namespace einmal::gateway
