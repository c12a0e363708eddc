#include "einmal/identity/caller.hpp"

#include <algorithm>
#include <array>

#include "einmal/core/scope.hpp"

namespace einmal::identity {

namespace {

/// The same name to a reader that does not tell hyphen from underscore, as CGI-like ones do not.
bool same_but_for_hyphens(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = a[i] == '_' ? '-' : a[i];
    const auto y = b[i] == '_' ? '-' : b[i];
    if (!http::iequals({&x, 1}, {&y, 1})) return false;
  }
  return true;
}

class HeaderSource final : public CallerSource {
 public:
  HeaderSource(std::string name, std::vector<Network> trusted)
      : name_(std::move(name)), trusted_(std::move(trusted)) {}

  Verdict identify(const http::RequestHead& head, const Peer& peer) override {
    if (!trusts(peer))
      return NoCaller{
          403, {}, "the request came from a peer that is not trusted to name its caller"};
    const auto account = head.headers.first(name_);
    if (!account || account->empty()) return NoCaller{403, {}, "the request names no caller"};
    if (head.headers.count(name_) != 1)
      return NoCaller{403, {}, "the request names its caller twice"};
    if (account->size() > max_scope_part_bytes)
      return NoCaller{403, {}, "the caller's name is too long"};
    return Caller{std::string(*account)};
  }

  void strip(http::HeaderLines& headers, const Peer& peer) const override {
    const bool trusted = trusts(peer);
    headers.remove_if([&](const http::HeaderLine& line) {
      return same_but_for_hyphens(line.name, name_) &&
             !(trusted && http::iequals(line.name, name_));
    });
  }

 private:
  bool trusts(const Peer& peer) const {
    return std::any_of(trusted_.begin(), trusted_.end(),
                       [&](const Network& network) { return network.contains(peer.address); });
  }

  std::string name_;
  std::vector<Network> trusted_;
};

class FixedSource final : public CallerSource {
 public:
  explicit FixedSource(std::string account) : account_(std::move(account)) {}
  Verdict identify(const http::RequestHead&, const Peer&) override { return Caller{account_}; }

 private:
  std::string account_;
};

}  // namespace

Verdict CallerSource::judge(const http::ResponseHead&) {
  return CannotTell{"this caller source asks nobody"};
}
void CallerSource::strip(http::HeaderLines&, const Peer&) const {}

bool is_credential_header(std::string_view name) {
  static constexpr std::array<std::string_view, 9> names{
      "authorization", "proxy-authorization", "cookie",       "x-api-key", "api-key",
      "x-auth-token",  "x-access-token",      "x-csrf-token", "x-auth-key"};
  return std::any_of(names.begin(), names.end(),
                     [&](auto known) { return same_but_for_hyphens(known, name); });
}

Result<std::unique_ptr<CallerSource>> header_source(std::string_view name,
                                                    const std::vector<std::string>& trusted_peers) {
  const auto where = "caller source header:" + std::string(name) + ": ";
  if (!http::is_token(name)) return failure(ErrorCode::invalid, where + "not a field name");
  if (is_credential_header(name)) {
    return failure(ErrorCode::invalid,
                   where +
                       "this header carries credentials, and a credential is no identity: the "
                       "retry after a token refresh would be another caller; translate it with "
                       "caller.map, or use jwt: or auth-request:");
  }
  std::vector<Network> trusted;
  for (const auto& text : trusted_peers) {
    auto network = Network::parse(text);
    if (!network)
      return failure(network.error().code, "caller.trusted_peers: " + network.error().message);
    trusted.push_back(*network);
  }
  return std::unique_ptr<CallerSource>(
      std::make_unique<HeaderSource>(std::string(name), std::move(trusted)));
}

Result<std::unique_ptr<CallerSource>> fixed_source(std::string_view account) {
  if (account.empty() || account.size() > max_scope_part_bytes) {
    return failure(ErrorCode::invalid, "caller source fixed: the account name has 1 to " +
                                           std::to_string(max_scope_part_bytes) + " bytes");
  }
  return std::unique_ptr<CallerSource>(std::make_unique<FixedSource>(std::string(account)));
}

}  // namespace einmal::identity
