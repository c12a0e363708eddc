// The JSON canonicaliser against the grammar scanner, against itself and against Boost.JSON's
// values.

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <string>

#include "einmal/fingerprint/canonical_json.hpp"
#include "einmal/fingerprint/fingerprint.hpp"
#include "einmal/fingerprint/json_document.hpp"
#include "einmal/fingerprint/json_grammar.hpp"
#include "expect.hpp"

namespace einmal {
namespace {

const FingerprintProfile& plain() {
  static const FingerprintProfile profile = FingerprintProfile::make({}).value();
  return profile;
}

/// Pointers and defaults that short inputs reach.
const FingerprintProfile& choosy(bool only) {
  static const auto make = [](bool with_only) {
    FingerprintOptions options;
    options.ignore = {"/a/b", "/1", "/a/0"};
    options.defaults = {{"/b", "{\"a\":1}"}, {"/b/c", "[1]"}, {"/a/c", "null"}, {"/a/b/c", "0"}};
    options.nfc = true;
    if (with_only) options.only = {"/a", "/b/c/0", "/2"};
    return FingerprintProfile::make(std::move(options)).value();
  };
  static const FingerprintProfile all = make(false), some = make(true);
  return only ? some : all;
}

std::variant<Digest, Unusable> print_of(std::string_view body, const FingerprintProfile& profile) {
  static const http::HeaderLines headers{{"Content-Type", "application/json"}};
  return fingerprint(profile, {"POST", "o", "h", "/", headers, body});
}

/// Boost.JSON makes NaN of 0e999; such a number is not compared.
bool near(double a, double b) {
  return a == b || !std::isfinite(a) ||
         std::fabs(a - b) <= 1e-9 * std::max(std::fabs(a), std::fabs(b));
}

/// Equal but for the representation and the last digits of numbers.
bool alike(const boost::json::value& a, const boost::json::value& b) {
  if (a.is_number() && b.is_number()) return near(a.to_number<double>(), b.to_number<double>());
  if (a.kind() != b.kind()) return false;
  if (a.is_array()) {
    return std::equal(a.get_array().begin(), a.get_array().end(), b.get_array().begin(),
                      b.get_array().end(), alike);
  }
  if (!a.is_object()) return a == b;
  if (a.get_object().size() != b.get_object().size()) return false;
  return std::all_of(a.get_object().begin(), a.get_object().end(), [&](const auto& member) {
    const auto* other = b.get_object().if_contains(member.key());
    return other != nullptr && alike(member.value(), *other);
  });
}

boost::json::value value_of(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = max_json_depth;
  return boost::json::parse({text.data(), text.size()}, {}, options);
}

std::string with_blanks(std::string_view text) {
  std::string out = "\n";
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out.push_back(text[i]);
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\') out.push_back(text[++i]);
    if (!in_string && std::string_view("{}[],:\"").find(text[i]) != std::string_view::npos)
      out += " \t";
  }
  return out;
}

}  // namespace
}  // namespace einmal

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einmal;
  const std::string_view text = input_text(data, size);
  JsonDocument document;
  const auto fault = document.parse(text, false);
  const JsonScan scan = scan_json(text);
  EINMAL_EXPECT(scan.follows_grammar == !(fault && fault->breaks_grammar));
  EINMAL_EXPECT(fault || scan.fault.empty());
  EINMAL_EXPECT(!fault || fault->reason.find("parser") == std::string::npos);

  const auto digest = print_of(text, plain());
  const bool unusable = fault && !fault->breaks_grammar;
  EINMAL_EXPECT(std::holds_alternative<Unusable>(digest) == unusable);
  print_of(text, choosy(false));
  print_of(text, choosy(true));
  if (fault) return 0;

  const auto exact = canonical_json(text, JsonNumbers::exact);
  EINMAL_EXPECT(exact.has_value());
  const auto again = canonical_json(*exact, JsonNumbers::exact);
  if (again) {  // An exponent at its bound may be beyond it once zeros are taken off the digits.
    EINMAL_EXPECT(*again == *exact);
    EINMAL_EXPECT(std::get<Digest>(print_of(*exact, plain())) == std::get<Digest>(digest));
  }
  EINMAL_EXPECT(std::get<Digest>(print_of(with_blanks(text), plain())) == std::get<Digest>(digest));
  const auto rfc8785 = canonical_json(text, JsonNumbers::ieee_double);
  if (rfc8785) {
    EINMAL_EXPECT(*canonical_json(*rfc8785, JsonNumbers::ieee_double) == *rfc8785);
    EINMAL_EXPECT(alike(value_of(text), value_of(*rfc8785)));
  }
  return 0;
}
