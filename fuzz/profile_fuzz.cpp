// Definitions as a store may hand them back: refused, or exactly what they describe.

#include "einmal/fingerprint/fingerprint.hpp"
#include "expect.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einmal;
  const BytesView definition = input_text(data, size);
  const auto profile = FingerprintProfile::from_definition(definition);
  if (profile) EINMAL_EXPECT(profile->definition() == definition);
  return 0;
}
