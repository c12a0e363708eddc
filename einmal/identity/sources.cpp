#include "einmal/identity/sources.hpp"

#include <openssl/sha.h>

#include <array>
#include <fstream>
#include <unordered_map>

#include "einmal/base/bytes.hpp"
#include "einmal/core/scope.hpp"

namespace einmal::identity {

namespace {

class AuthRequestSource final : public CallerSource {
 public:
  AuthRequestSource(std::string url, std::string answer_header)
      : url_(std::move(url)), answer_header_(std::move(answer_header)) {}

  Verdict identify(const http::RequestHead&, const Peer&) override { return AskFirst{url_}; }

  Verdict judge(const http::ResponseHead& answer) override {
    if (answer.status == 401 || answer.status == 403) {
      const auto challenge = answer.headers.first("www-authenticate").value_or("");
      return NoCaller{answer.status, std::string(challenge), "the authorisation service says no"};
    }
    if (answer.status < 200 || answer.status > 299)
      return CannotTell{"the authorisation service answered " + std::to_string(answer.status)};
    const auto names = answer.headers.all(answer_header_);
    if (names.size() != 1 || names.front().empty() || names.front().size() > max_scope_part_bytes)
      return CannotTell{"the authorisation service let the request in and named no single caller"};
    return Caller{std::string(names.front())};
  }

 private:
  std::string url_, answer_header_;
};

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

class MappedSource final : public CallerSource {
 public:
  MappedSource(std::string name, std::unordered_map<std::string, std::string> accounts)
      : name_(std::move(name)), accounts_(std::move(accounts)) {}

  Verdict identify(const http::RequestHead& head, const Peer&) override {
    const auto credentials = head.headers.all(name_);
    // Looked up by digest: how long it takes says nothing about how much of a guess was right.
    const auto account =
        credentials.size() == 1 ? accounts_.find(sha256(credentials.front())) : accounts_.end();
    if (account == accounts_.end())
      return NoCaller{401, "ApiKey", "the request carries no credential that is known here"};
    return Caller{account->second};
  }

 private:
  std::string name_;
  std::unordered_map<std::string, std::string> accounts_;
};

}  // namespace

Result<std::unique_ptr<CallerSource>> auth_request_source(std::string_view url,
                                                          std::string_view answer_header) {
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return failure(ErrorCode::invalid,
                   "caller source auth-request: needs an http:// or https:// URL");
  if (!http::is_token(answer_header))
    return failure(ErrorCode::invalid, "caller.answer_header: not a field name");
  return std::unique_ptr<CallerSource>(
      std::make_unique<AuthRequestSource>(std::string(url), std::string(answer_header)));
}

Result<std::unique_ptr<CallerSource>> mapped_source(std::string_view name,
                                                    const std::string& file) {
  if (!http::is_token(name))
    return failure(ErrorCode::invalid,
                   "caller source header:" + std::string(name) + ": not a field name");
  std::ifstream in(file);
  if (!in) return failure(ErrorCode::invalid, file + ": cannot be read; caller.map names a file");
  std::unordered_map<std::string, std::string> accounts;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    const auto blank = line.find(' ');
    constexpr std::string_view prefix = "sha256:";
    const auto digest = blank != std::string::npos && line.starts_with(prefix)
                            ? from_hex(line.substr(prefix.size(), blank - prefix.size()))
                            : std::nullopt;
    const std::string account = blank == std::string::npos ? "" : line.substr(blank + 1);
    const auto where = file + ":" + std::to_string(number) + ": ";
    if (!digest || digest->size() != SHA256_DIGEST_LENGTH || account.empty() ||
        account.size() > max_scope_part_bytes)
      return failure(ErrorCode::invalid,
                     where +
                         "expected `sha256:<64 hex digits> <account>` (the digest of the "
                         "credential, never the credential)");
    if (!accounts.emplace(*digest, account).second)
      return failure(ErrorCode::invalid, where + "this credential has an account already");
  }
  if (accounts.empty()) return failure(ErrorCode::invalid, file + ": names no account");
  return std::unique_ptr<CallerSource>(
      std::make_unique<MappedSource>(std::string(name), std::move(accounts)));
}

}  // namespace einmal::identity
