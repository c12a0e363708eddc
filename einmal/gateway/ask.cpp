#include "einmal/gateway/ask.hpp"

#include "einmal/gateway/small_exchange.hpp"
#include "einmal/http/replay_headers.hpp"
#include "einmal/http/target.hpp"

namespace einmal::gateway {

namespace {

/// What an answer's body may be, though nobody looks at it.
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
  std::optional<SmallAnswer> answer = co_await exchange(*pool_, head, times, body_limit);
  if (!answer) co_return std::nullopt;
  co_return std::move(answer->head);
}

}  // namespace einmal::gateway
