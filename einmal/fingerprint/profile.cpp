#include <algorithm>
#include <optional>

#include "einmal/fingerprint/media_type.hpp"
#include "einmal/fingerprint/profile_rules.hpp"
#include "einmal/fingerprint/target.hpp"
#include "einmal/http/target.hpp"

namespace einmal {

namespace {

struct Unfit {
  std::string_view name;  ///< A whole name, or a prefix that ends in `*`.
  std::string_view why;
};

constexpr std::string_view volatile_header =
    "changes between honest attempts, which would make every retry a mismatch";
constexpr std::string_view credential_header =
    "is a credential: the retry after it was renewed must be the same request";
constexpr std::string_view covered_header = "is part of every fingerprint already";

constexpr Unfit unfit_headers[] = {
    {"accept*", volatile_header},
    {"user-agent", volatile_header},
    {"date", volatile_header},
    {"connection", volatile_header},
    {"keep-alive", volatile_header},
    {"te", volatile_header},
    {"trailer", volatile_header},
    {"transfer-encoding", volatile_header},
    {"upgrade", volatile_header},
    {"expect", volatile_header},
    {"content-length", volatile_header},
    {"traceparent", volatile_header},
    {"tracestate", volatile_header},
    {"baggage", volatile_header},
    {"b3", volatile_header},
    {"x-b3-*", volatile_header},
    {"x-request-id", volatile_header},
    {"x-correlation-id", volatile_header},
    {"x-amzn-trace-id", volatile_header},
    {"x-cloud-trace-context", volatile_header},
    {"via", volatile_header},
    {"forwarded", volatile_header},
    {"x-forwarded-*", volatile_header},
    {"authorization", credential_header},
    {"proxy-*", credential_header},
    {"cookie", credential_header},
    {"x-api-key", credential_header},
    {"host", covered_header},
    {"content-type", covered_header},
    {"content-encoding", covered_header},
    {"idempotency-key", "names the operation; it is not part of what is compared"},
    {"x-idempotency-key", "names the operation; it is not part of what is compared"},
};

const Unfit* find_unfit(std::string_view name) {
  for (const auto& unfit : unfit_headers) {
    if (unfit.name.back() == '*') {
      const auto prefix = unfit.name.substr(0, unfit.name.size() - 1);
      if (name.substr(0, prefix.size()) == prefix) return &unfit;
    } else if (name == unfit.name) {
      return &unfit;
    }
  }
  return nullptr;
}

Result<std::vector<std::string>> semantic_headers(const std::vector<std::string>& configured) {
  std::vector<std::string> names{"if-match", "if-unmodified-since"};
  for (const auto& header : configured) {
    const std::string name = lower_case(header);
    const std::string where = "fingerprint header " + quoted_for_reason(header);
    if (!http::is_token(name))
      return failure(ErrorCode::invalid, where + " is no header field name");
    if (const Unfit* unfit = find_unfit(name)) {
      return failure(ErrorCode::invalid, where + " " + std::string(unfit->why) + "; remove it");
    }
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::vector<std::string>> canonical_hosts(const std::vector<std::string>& configured) {
  std::vector<std::string> hosts;
  for (const auto& host : configured) {
    if (!http::parse_authority(host)) {
      return failure(ErrorCode::invalid,
                     "hosts: " + quoted_for_reason(host) + " is not HOST or HOST:PORT");
    }
    hosts.push_back(canonical_authority(host));
  }
  if (hosts.empty()) return hosts;
  std::sort(hosts.begin() + 1, hosts.end());
  hosts.erase(std::unique(hosts.begin() + 1, hosts.end()), hosts.end());
  hosts.erase(std::remove(hosts.begin() + 1, hosts.end(), hosts.front()), hosts.end());
  return hosts;
}

void write_list(CanonicalWriter& out, const std::vector<std::string>& list) {
  out.count(list.size());
  for (const auto& element : list) out.bytes(element);
}

Bytes write_definition(const FingerprintProfile::Rules& rules) {
  BytesWriter out;
  out.bytes(fingerprint_magic);
  out.count(fingerprint_version);
  write_list(out, rules.headers);
  write_list(out, rules.hosts);
  out.byte(rules.nfc ? 1 : 0);
  rules.selection.write_definition(out);
  return out.take();
}

/// Reads what CanonicalWriter wrote. After the first thing that is not there, `good` is false and
/// everything reads as empty.
class DefinitionReader {
 public:
  explicit DefinitionReader(BytesView rest) : rest_(rest) {}

  std::uint64_t count() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 63 && good_ && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    good_ = false;
    return 0;
  }
  std::string bytes() {
    const std::uint64_t size = count();
    if (size > rest_.size()) good_ = false;
    if (!good_) return {};
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  std::vector<std::string> list() {
    std::vector<std::string> values;
    for (std::uint64_t left = count(); left != 0 && good_; --left) values.push_back(bytes());
    return values;
  }
  bool good() const { return good_; }

 private:
  BytesView rest_;
  bool good_ = true;
};

}  // namespace

std::string FingerprintProfile::Rules::authority(std::string_view authority) const {
  std::string canonical = canonical_authority(authority);
  const bool alias = std::find(hosts.begin(), hosts.end(), canonical) != hosts.end();
  return alias ? hosts.front() : canonical;
}

Result<FingerprintProfile> FingerprintProfile::make(FingerprintOptions options) {
  if (!sha256_available()) {
    return failure(ErrorCode::unsupported,
                   "OpenSSL provides no SHA-256: check OPENSSL_CONF and its default provider");
  }
  auto headers = semantic_headers(options.headers);
  if (!headers) return pass_on(headers);
  auto hosts = canonical_hosts(options.hosts);
  if (!hosts) return pass_on(hosts);
  auto selection = JsonSelection::make(options.ignore, options.only, options.defaults, options.nfc);
  if (!selection) return pass_on(selection);
  auto rules = std::make_shared<Rules>(
      Rules{{}, {}, std::move(*headers), std::move(*hosts), std::move(*selection)});
  rules->nfc = options.nfc;
  rules->max_decoded_body = options.max_decoded_body;
  rules->definition = write_definition(*rules);
  rules->id = sha256(rules->definition);
  return FingerprintProfile(std::move(rules));
}

Result<FingerprintProfile> FingerprintProfile::from_definition(BytesView definition,
                                                               std::size_t max_decoded_body) {
  DefinitionReader in(definition);
  const std::string magic = in.bytes();
  const std::uint64_t version = in.count();
  if (!in.good() || magic != fingerprint_magic || version == 0) {
    return failure(ErrorCode::corrupt, "fingerprint profile in the store: not a definition");
  }
  if (version > fingerprint_version) {
    return failure(ErrorCode::incompatible, "fingerprint profile in the store: version " +
                                                std::to_string(version) +
                                                " is newer than this program; upgrade it");
  }
  FingerprintOptions options;
  options.max_decoded_body = max_decoded_body;
  options.headers = in.list();
  options.hosts = in.list();
  options.nfc = in.count() != 0;
  options.ignore = in.list();
  options.only = in.list();
  for (std::uint64_t left = in.count(); left != 0 && in.good(); --left) {
    std::string pointer = in.bytes();
    options.defaults[std::move(pointer)] = in.bytes();
  }
  auto profile = make(std::move(options));
  if (profile && profile->definition() == definition) return profile;
  return failure(ErrorCode::corrupt, "fingerprint profile in the store: its definition is damaged");
}

const Digest& FingerprintProfile::id() const { return rules_->id; }
const Bytes& FingerprintProfile::definition() const { return rules_->definition; }

}  // namespace einmal
