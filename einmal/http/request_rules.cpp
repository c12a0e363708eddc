#include "einmal/http/request_rules.hpp"

#include <string>

#include "einmal/http/target.hpp"

namespace einmal::http {

namespace {

std::string_view reduce_absolute_form(RequestHead& head, const std::optional<Authority>& host) {
  const auto absolute = parse_absolute_target(head.target);
  if (!absolute) return "the request target is none of the four forms";
  const auto authority = parse_authority(absolute->authority);
  if (!authority) return "the authority of the request target is malformed";
  const auto name = to_string(*authority, absolute->scheme);
  if (!host) {
    head.headers.add("Host", name);
  } else if (to_string(*host, absolute->scheme) != name) {
    return "the request target and Host name different authorities";
  }
  std::string origin(absolute->rest);
  if (origin.empty() && head.method == "OPTIONS") {
    origin = "*";
  } else if (origin.empty() || origin.front() == '?') {
    origin.insert(0, "/");
  }
  head.target = std::move(origin);
  return {};
}

}  // namespace

std::string_view check_request(RequestHead& head) {
  std::optional<Authority> host;
  std::size_t hosts = 0;
  for (const auto& line : head.headers) {
    if (!iequals(line.name, "Host")) continue;
    if (++hosts > 1) return "more than one Host line";
    host = parse_authority(line.value);
    if (!host) return "Host is not a host with an optional port";
  }
  if (hosts == 0 && head.version >= 11) return "HTTP/1.1 without Host";

  const std::string_view target = head.target;
  if (target.find('#') != std::string_view::npos) return "the request target has a fragment";
  if (head.method == "CONNECT") {
    const auto authority = parse_authority(target);
    return authority && authority->port ? "" : "CONNECT needs host:port as its target";
  }
  if (target.front() == '/') return {};
  if (target == "*") return head.method == "OPTIONS" ? "" : "only OPTIONS has the target *";
  return reduce_absolute_form(head, host);
}

}  // namespace einmal::http
