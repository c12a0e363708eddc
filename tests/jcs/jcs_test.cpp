#include <gtest/gtest.h>

#include <boost/beast/core/detail/base64.hpp>
#include <cstdlib>
#include <sstream>
#include <string>

#include "einmal/fingerprint/canonical_json.hpp"
#include "einmal/testing/process.hpp"

/// Canonical JSON against another implementation of RFC 8785, which is ECMAScript's own: the one
/// that the RFC is defined by.

namespace einmal::test {
namespace {

std::string decoded(const std::string& text) {
  namespace base64 = boost::beast::detail::base64;
  std::string out(base64::decoded_size(text.size()), '\0');
  out.resize(base64::decode(out.data(), text.data(), text.size()).first);
  return out;
}

TEST(CanonicalJson, IsWhatEcmascriptMakesOfTheSameDocument) {
  const char* from_outside = std::getenv("EINMAL_SEED");
  const std::string seed = from_outside != nullptr ? from_outside : "20240601";
  const std::string count = "20000";
  ChildProcess node(
      {EINMAL_NODE, std::string(EINMAL_SOURCE_DIR) + "/tests/jcs/documents.mjs", seed, count});
  node.wait_for_output_end();
  std::istringstream lines(node.output());
  std::string spelled, wanted;
  std::size_t compared = 0;
  while (std::getline(lines, spelled) && std::getline(lines, wanted)) {
    const auto document = decoded(spelled);
    const auto canonical = canonical_json(document, JsonNumbers::ieee_double);
    ASSERT_TRUE(canonical) << "EINMAL_SEED=" << seed << ", document " << compared << ": "
                           << document;
    ASSERT_EQ(*canonical, decoded(wanted))
        << "EINMAL_SEED=" << seed << ", document " << compared << ": " << document;
    // Equal values have equal exact forms, however they were spelled.
    const auto exact = canonical_json(document, JsonNumbers::exact);
    ASSERT_TRUE(exact) << document;
    ASSERT_EQ(canonical_json(*exact, JsonNumbers::ieee_double), *canonical) << document;
    ++compared;
  }
  std::printf("%zu documents compared, seed %s\n", compared, seed.c_str());
  EXPECT_EQ(compared, 20000U) << node.errors();
}

}  // namespace
}  // namespace einmal::test
