// The small grammars of header values: nothing is read that was not said, and what is written can
// be read back.

#include <chrono>
#include <string>

#include "einmal/core/scope.hpp"
#include "einmal/http/http_date.hpp"
#include "einmal/http/key_field.hpp"
#include "einmal/http/negotiation.hpp"
#include "einmal/http/structured_field.hpp"
#include "einmal/http/target.hpp"
#include "expect.hpp"

namespace einmal::http {
namespace {

void keys(std::string_view text) {
  const auto found = parse_key(text);
  EINMAL_EXPECT(!std::holds_alternative<key::Absent>(found));
  const auto* present = std::get_if<key::Present>(&found);
  if (present == nullptr) return;
  EINMAL_EXPECT(is_valid_key(present->value));
  std::string quoted = "\"";
  for (const char c : present->value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  const auto again = parse_key(quoted + "\"");
  EINMAL_EXPECT(std::get<key::Present>(again).value == present->value);
  // Two in one field are never one key, whatever they are.
  const std::string value(trim(text));
  EINMAL_EXPECT(std::holds_alternative<key::Invalid>(parse_key(value + "," + value)));
}

void times(std::string_view text) {
  const WallTime now(std::chrono::seconds(1'764'547'200));
  if (const auto date = parse_http_date(text, now)) {
    EINMAL_EXPECT(parse_http_date(imf_fixdate(*date), now) == date);
  }
  if (const auto wait = parse_retry_after(text, now)) {
    EINMAL_EXPECT(*wait >= Duration::zero() && *wait <= std::chrono::hours(24));
  }
}

void negotiation(std::string_view text) {
  const auto preferences = parse_prefer(HeaderLines{{"Prefer", text}});
  if (preferences.wait) EINMAL_EXPECT(*preferences.wait >= Duration::zero());
  const AcceptEncoding accepted(HeaderLines{{"Accept-Encoding", text}});
  const auto best = accepted.best_of({"gzip", "zstd"});
  if (best) EINMAL_EXPECT(accepted.accepts(*best));
  for (const auto* coding : {"gzip", "identity", "br"}) {
    EINMAL_EXPECT(accepted.quality(coding) >= 0 && accepted.quality(coding) <= 1000);
  }
}

void authorities(std::string_view text) {
  const auto authority = parse_authority(text);
  if (!authority) return;
  const auto written = to_string(*authority, "http");
  const auto again = parse_authority(written);
  EINMAL_EXPECT(again && to_string(*again, "http") == written);
}

}  // namespace
}  // namespace einmal::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = input_text(data, size);
  einmal::http::keys(text);
  einmal::http::times(text);
  einmal::http::negotiation(text);
  einmal::http::authorities(text);
  einmal::http::parse_string_item(text);
  return 0;
}
