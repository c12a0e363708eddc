#include "einmal/gateway/representation.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/fingerprint/content_coding.hpp"
#include "einmal/fingerprint/fingerprint.hpp"
#include "einmal/http/negotiation.hpp"

namespace einmal::gateway {

namespace {

/// What a decoded body may take at most.
constexpr std::size_t decoded_limit = default_max_decoded_body;
/// Below, coding saves no packet; above, it would hold the loop for more than a few milliseconds.
constexpr std::size_t least_compressed = 1024;
constexpr std::size_t most_compressed = 256 * 1024;

constexpr std::array<std::string_view, 4> digests = {"Content-MD5", "Digest", "Content-Digest",
                                                     "Repr-Digest"};

bool is_text(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  type.erase(type.find_last_not_of(" \t") + 1);
  std::transform(type.begin(), type.end(), type.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return type.starts_with("text/") || type == "application/json" || type == "application/xml" ||
         type == "application/javascript" || type == "application/x-ndjson" ||
         type.ends_with("+json") || type.ends_with("+xml");
}

bool is_compressible(int status, const http::HeaderLines& headers, BytesView body) {
  return status != 206 && !headers.has("Content-Range") && body.size() >= least_compressed &&
         body.size() <= most_compressed && is_text(headers.first("Content-Type").value_or("")) &&
         !headers.has_token("Cache-Control", "no-transform") && !headers.has("Signature") &&
         std::none_of(digests.begin(), digests.end(),
                      [&](std::string_view name) { return headers.has(name); });
}

void vary_by_coding(http::HeaderLines& headers) {
  if (!headers.has_token("Vary", "Accept-Encoding") && !headers.has_token("Vary", "*"))
    headers.add("Vary", "Accept-Encoding");
}

void weaken_validator(http::HeaderLines& headers) {
  if (const auto tag = headers.first("ETag"); tag && !tag->empty() && tag->front() == '"')
    headers.set("ETag", "W/" + std::string(*tag));
}

void compress(const http::AcceptEncoding& accepted, http::HeaderLines& headers, BytesView& body,
              Bytes& changed) {
  vary_by_coding(headers);
  const auto coding = accepted.best_of({"zstd", "gzip"});
  if (!coding) return;
  Bytes coded = encode_body(*coding, body);
  if (coded.size() >= body.size()) return;
  changed = std::move(coded);
  body = changed;
  headers.add("Content-Encoding", *coding);
  weaken_validator(headers);
}

bool decode(const std::vector<std::string>& codings, http::HeaderLines& headers, BytesView& body,
            Bytes& changed) {
  Bytes decoded;
  if (!body.empty() && decode_body(codings, body, decoded_limit, decoded) != Decoding::decoded)
    return false;
  changed = std::move(decoded);
  body = changed;
  headers.remove("Content-Encoding");
  for (const auto name : digests) headers.remove(name);
  weaken_validator(headers);
  vary_by_coding(headers);
  return true;
}

}  // namespace

bool fit_to_client(const http::HeaderLines& request, int status, bool may_compress,
                   http::HeaderLines& headers, BytesView& body, Bytes& changed) {
  const auto codings = content_codings(headers);
  const http::AcceptEncoding accepted(request);
  if (codings.empty()) {
    if (may_compress && is_compressible(status, headers, body))
      compress(accepted, headers, body, changed);
    return true;
  }
  const auto acceptable = [&](const std::string& coding) { return accepted.accepts(coding); };
  if (std::all_of(codings.begin(), codings.end(), acceptable)) return true;
  return decode(codings, headers, body, changed);
}

}  // namespace einmal::gateway
