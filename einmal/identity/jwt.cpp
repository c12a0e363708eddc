#include "einmal/identity/jwt.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "einmal/core/scope.hpp"

namespace einmal::identity {

namespace json = boost::json;

namespace {

constexpr std::size_t max_token_bytes = 16 * 1024;
constexpr auto look_at_file_every = std::chrono::seconds(1);

/// What of a file changes when it is replaced or rewritten.
struct FileMark {
  std::int64_t seconds = 0, nanoseconds = 0, size = -1;
  ino_t inode = 0;
  friend bool operator==(const FileMark&, const FileMark&) = default;
};

FileMark mark_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  return {info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_size, info.st_ino};
}

Result<KeySet> load_keys(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    return failure(ErrorCode::invalid,
                   path + ": cannot be read; caller.keys names a JWK set or PEM file");
  return KeySet::parse(text.str(), path);
}

/// A claim's value as text, for those that can name something: strings, integers, booleans.
std::optional<std::string> as_text(const json::value& value) {
  if (value.is_string()) return std::string(value.as_string());
  if (value.is_int64()) return std::to_string(value.as_int64());
  if (value.is_uint64()) return std::to_string(value.as_uint64());
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  return std::nullopt;
}

/// Whether the value is `wanted`, or a list (an array, or words as in `scope`, RFC 8693 section
/// 4.2) that has it.
bool has_value(const json::value& value, const std::string& wanted) {
  if (const auto* list = value.if_array()) {
    return std::any_of(list->begin(), list->end(),
                       [&](const json::value& entry) { return as_text(entry) == wanted; });
  }
  const auto text = as_text(value);
  if (!text) return false;
  if (*text == wanted) return true;
  std::istringstream words(*text);
  for (std::string word; value.is_string() && words >> word;) {
    if (word == wanted) return true;
  }
  return false;
}

/// NumericDate (RFC 7519 section 2): seconds since the epoch, possibly with a fraction.
std::optional<double> numeric_date(const json::object& claims, std::string_view name) {
  const auto* value = claims.if_contains(name);
  if (!value || !value->is_number()) return std::nullopt;
  const double seconds = value->to_number<double>();
  return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
}

class JwtSource final : public CallerSource {
 public:
  JwtSource(JwtOptions options, std::vector<JwsAlgorithm> algorithms, KeySet keys, FileMark mark,
            const Clock& clock)
      : options_(std::move(options)),
        algorithms_(std::move(algorithms)),
        keys_(std::move(keys)),
        mark_(mark),
        clock_(clock),
        looked_(clock.boot_now()) {}

  Verdict identify(const http::RequestHead& head, const Peer&) override {
    constexpr std::string_view scheme = "bearer ";
    const auto lines = head.headers.all("authorization");
    if (lines.empty()) return NoCaller{401, "Bearer", "the request carries no bearer token"};
    if (lines.size() > 1) return refuse("the request carries two Authorization lines");
    auto token = lines.front();
    if (token.size() < scheme.size() || !http::iequals(token.substr(0, scheme.size()), scheme))
      return NoCaller{401, "Bearer", "the request carries no bearer token"};
    token.remove_prefix(scheme.size());
    if (token.size() > max_token_bytes) return refuse("the token is too long");

    reread_keys();
    const auto payload = verify_jws(token, keys_, algorithms_);
    if (!payload) return refuse(payload.error().message);
    json::error_code error;
    const json::value document = json::parse(*payload, error);
    const auto* claims = error ? nullptr : document.if_object();
    if (!claims) return refuse("the token's payload is not a JSON object");
    return judge_claims(*claims);
  }

 private:
  static NoCaller refuse(std::string why) {
    return NoCaller{401, "Bearer error=\"invalid_token\"", std::move(why)};
  }

  Verdict judge_claims(const json::object& claims) const {
    const double now = std::chrono::duration<double>(clock_.wall_now().time_since_epoch()).count();
    const double leeway = std::chrono::duration<double>(options_.leeway).count();
    const auto expires = numeric_date(claims, "exp");
    if (!expires) return refuse("the token does not say when it expires");
    if (now >= *expires + leeway) return refuse("the token has expired");
    if (claims.if_contains("nbf")) {
      const auto not_before = numeric_date(claims, "nbf");
      if (!not_before || now < *not_before - leeway) return refuse("the token is not valid yet");
    }
    const auto* issuer_value = claims.if_contains("iss");
    const std::string issuer = issuer_value && issuer_value->is_string()
                                   ? std::string(issuer_value->as_string())
                                   : std::string();
    if (options_.issuer && issuer != *options_.issuer)
      return refuse("the token is of another issuer");
    if (!options_.audiences.empty()) {
      const auto* audience = claims.if_contains("aud");
      const auto meant = [&](const std::string& us) { return audience_names(*audience, us); };
      if (!audience || !std::any_of(options_.audiences.begin(), options_.audiences.end(), meant))
        return refuse("the token is meant for another audience");
    }
    const auto* claim = claims.if_contains(options_.claim);
    const auto account = claim && !claim->is_bool() ? as_text(*claim) : std::nullopt;
    if (!account || account->empty())
      return refuse("the token has no claim \"" + options_.claim + "\" that names an account");
    for (const auto& [name, wanted] : options_.require) {
      const auto* value = claims.if_contains(name);
      if (!value || !has_value(*value, wanted)) {
        return NoCaller{403, "Bearer error=\"insufficient_scope\"",
                        "the token's claim \"" + name + "\" does not have the required value"};
      }
    }
    // The length keeps (issuer, claim) apart from every other pair of the same letters.
    std::string caller = std::to_string(issuer.size()) + ":" + issuer + ":" + *account;
    if (caller.size() > max_scope_part_bytes) return refuse("the account's name is too long");
    return Caller{std::move(caller)};
  }

  /// `aud` is one string or an array of them; words within one string do not count.
  static bool audience_names(const json::value& audience, const std::string& us) {
    if (audience.is_string()) return audience.as_string() == us;
    const auto* list = audience.if_array();
    return list && std::any_of(list->begin(), list->end(), [&](const json::value& entry) {
             return entry.is_string() && entry.as_string() == us;
           });
  }

  void reread_keys() {
    const auto now = clock_.boot_now();
    if (now - looked_ < look_at_file_every) return;
    looked_ = now;
    const auto mark = mark_of(options_.keys);
    if (mark == mark_) return;
    auto keys = load_keys(options_.keys);
    if (!keys) return;  // Perhaps half written: the next look reads it again.
    keys_ = std::move(*keys);
    mark_ = mark;
  }

  JwtOptions options_;
  std::vector<JwsAlgorithm> algorithms_;
  KeySet keys_;
  FileMark mark_;
  const Clock& clock_;
  BootTime looked_;
};

}  // namespace

Result<std::unique_ptr<CallerSource>> jwt_source(const JwtOptions& options, const Clock& clock) {
  if (options.claim.empty())
    return failure(ErrorCode::invalid, "caller source jwt: name the claim, as in jwt:sub");
  std::vector<JwsAlgorithm> algorithms;
  for (const auto& text : options.algorithms) {
    const auto algorithm = jws_algorithm(text);
    if (!algorithm)
      return failure(ErrorCode::invalid, "caller.algorithms: \"" + text +
                                             "\" is not one of RS256, ES256, EdDSA, HS256");
    algorithms.push_back(*algorithm);
  }
  const auto mark = mark_of(options.keys);
  auto keys = load_keys(options.keys);
  if (!keys) return pass_on(keys);
  for (const auto algorithm : algorithms) {
    if (!keys->has(algorithm))
      return failure(ErrorCode::invalid, options.keys + ": has no key for " +
                                             std::string(name(algorithm)) +
                                             ", which caller.algorithms names");
  }
  return std::unique_ptr<CallerSource>(
      std::make_unique<JwtSource>(options, std::move(algorithms), std::move(*keys), mark, clock));
}

}  // namespace einmal::identity
