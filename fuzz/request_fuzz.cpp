// Whole requests: any header values and any body have a digest that is the same every time, or a
// short printable reason. Input: content type, content coding and a further header value on a line
// each, then the body.

#include <string>

#include "einmal/fingerprint/fingerprint.hpp"
#include "einmal/http/head.hpp"
#include "expect.hpp"

namespace {

std::string_view take_line(std::string_view& rest) {
  const auto line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einmal;
  static const FingerprintProfile profile = [] {
    FingerprintOptions options;
    options.headers = {"X-Semantic"};
    options.max_decoded_body = 1 << 16;
    return FingerprintProfile::make(std::move(options)).value();
  }();
  std::string_view rest = input_text(data, size);
  http::HeaderLines headers;
  for (const char* name : {"Content-Type", "Content-Encoding", "X-Semantic"}) {
    const auto value = take_line(rest);
    if (!http::is_field_value(value)) return 0;
    if (!value.empty()) headers.add(name, value);
  }
  const FingerprintInput input{"POST", "o", "h", "/", headers, rest};
  const auto result = fingerprint(profile, input);
  const auto again = fingerprint(profile, input);
  EINMAL_EXPECT(result.index() == again.index());
  if (const auto* unusable = std::get_if<Unusable>(&result)) {
    EINMAL_EXPECT(!unusable->reason.empty() && unusable->reason.size() <= 400);
    for (const char c : unusable->reason) EINMAL_EXPECT(c >= 0x20 && c < 0x7f);
  } else {
    EINMAL_EXPECT(std::get<Digest>(result) == std::get<Digest>(again));
  }
  return 0;
}
