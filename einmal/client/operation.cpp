#include "einmal/client/operation.hpp"

#include <boost/url.hpp>

namespace einmal::client {

namespace urls = boost::urls;

namespace {

constexpr std::string_view operations_path = "/.well-known/einmal/operations/";

std::string text(urls::string_view view) { return {view.data(), view.size()}; }

std::uint16_t port_of(const urls::url_view_base& url) {
  if (url.port_number() != 0) return url.port_number();
  return url.scheme_id() == urls::scheme::https ? 443 : 80;
}

}  // namespace

std::optional<std::string> operation_url(std::string_view request_url, std::string_view location) {
  const auto base = urls::parse_uri({request_url.data(), request_url.size()});
  const auto reference = urls::parse_uri_reference({location.data(), location.size()});
  if (!base || !reference) return std::nullopt;
  urls::url resolved;
  if (!urls::resolve(*base, *reference, resolved)) return std::nullopt;
  urls::url origin(*base);
  origin.normalize();
  resolved.normalize();
  const bool same = resolved.scheme_id() == origin.scheme_id() &&
                    resolved.encoded_host() == origin.encoded_host() &&
                    port_of(resolved) == port_of(origin) && !resolved.has_userinfo();
  const std::string path = text(resolved.encoded_path());
  if (!same || path.compare(0, operations_path.size(), operations_path) != 0) return std::nullopt;
  if (resolved.has_query() || resolved.has_fragment()) return std::nullopt;
  return text(resolved.buffer());
}

std::string discovery_url(std::string_view request_url) {
  const auto parsed = urls::parse_uri({request_url.data(), request_url.size()});
  if (!parsed) return {};
  return text(parsed->encoded_origin()) + "/.well-known/idempotency";
}

std::string path_of(std::string_view url) {
  const auto parsed = urls::parse_uri({url.data(), url.size()});
  std::string path = parsed ? text(parsed->encoded_path()) : std::string();
  return path.empty() ? "/" : path;
}

Result<void> check_url(std::string_view url) {
  const auto parsed = urls::parse_uri({url.data(), url.size()});
  if (!parsed || parsed->encoded_host().empty() ||
      (parsed->scheme_id() != urls::scheme::http && parsed->scheme_id() != urls::scheme::https))
    return failure(ErrorCode::invalid, "the URL must be http://HOST... or https://HOST...");
  // Boost.URL 1.81 takes what follows the digits of a port for a path: http://host:80x/
  const std::string_view path(parsed->encoded_path().data(), parsed->encoded_path().size());
  const bool is_path = path.empty() || path.front() == '/';
  if (!is_path || (!parsed->port().empty() && parsed->port_number() == 0))
    return failure(ErrorCode::invalid, "the URL's port must be 1 to 65535");
  if (parsed->has_userinfo())
    return failure(ErrorCode::invalid,
                   "the URL carries a user name or password, which would be stored; give an "
                   "Authorization header instead");
  if (parsed->has_fragment())
    return failure(ErrorCode::invalid, "the URL has a fragment (#...), which is never sent");
  return {};
}

}  // namespace einmal::client
