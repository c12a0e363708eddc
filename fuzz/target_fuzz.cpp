// Canonical paths, queries and authorities are stable, and paths keep their promises of shape.

#include <string>

#include "einmal/fingerprint/target.hpp"
#include "expect.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einmal;
  const std::string_view target = input_text(data, size);
  const auto parts = split_target(target);
  EINMAL_EXPECT(parts.authority.size() + parts.path.size() + parts.query.size() <= target.size());
  canonical_authority(target);
  const std::string query = canonical_query(parts.query);
  EINMAL_EXPECT(canonical_query(query) == query);

  const std::string path = canonical_path(target);
  if (path.empty() || path[0] != '/') return 0;
  EINMAL_EXPECT(canonical_path(path) == path);
  EINMAL_EXPECT(canonical_path(std::string("/.") + path + "/") == path);
  EINMAL_EXPECT(path.find("//") == std::string::npos);
  EINMAL_EXPECT((path + "/").find("/./") == std::string::npos);
  EINMAL_EXPECT((path + "/").find("/../") == std::string::npos);
  EINMAL_EXPECT(path.size() == 1 || path.back() != '/');
  for (const char c : path) EINMAL_EXPECT(c > 0x20 && c < 0x7f && c != '?');
  return 0;
}
