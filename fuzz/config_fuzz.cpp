// Configuration files: read or refused with a line, never more; what was read is shown and checked.

#include "einmal/gateway/config_file.hpp"
#include "expect.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einmal;
  const auto config = parse_config(std::string(input_text(data, size)), "fuzz.toml");
  if (!config) {
    EINMAL_EXPECT(config.error().message.find("fuzz.toml") != std::string::npos);
    return 0;
  }
  EINMAL_EXPECT(check_config(*config).has_value());
  return 0;
}
